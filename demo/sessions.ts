import { cdpCall, nativeEvent } from '../src/domain/samples.ts'
import { type Arrival, landingUrl } from './channels.ts'
import type { Order } from './orders.ts'
import { fullName, type Person } from './people.ts'
import { numbered } from './year.ts'

export type Step =
  | { kind: 'view'; path: string }
  | { kind: 'track'; event: string; properties: Record<string, unknown> }
  | { kind: 'identify'; person: Person }
  | { kind: 'convert'; order: Order }

/** One visit. The steps are spaced evenly before its end. */
export type Session = {
  id: string
  visitor: string
  arrival: Arrival
  /** Set if the visitor is logged in. */
  person: Person | null
  endsAt: number
  steps: Step[]
}

/** One event and its route: CDP batches, or the native route. */
export type VisitEvent = { at: number; route: 'cdp' | 'native'; body: Record<string, unknown> }

const STEP_MS = 40_000

/** The site sends through a CDP. The checkout and one visit in fifty use the native route. */
export function buildVisitEvents(session: Session, index: number): VisitEvent[] {
  const isNative = index % 50 === 0
  return session.steps.map((step, i) => {
    const at = session.endsAt - (session.steps.length - 1 - i) * STEP_MS
    const native = isNative || step.kind === 'convert'
    const isLanding = i === 0
    const action = { session, step, id: `${session.id}-${numbered(i + 1, 2)}`, at, isLanding }
    return { at, route: native ? 'native' : 'cdp', body: native ? stepEvent(action) : stepCall(action) }
  })
}

/** One step of a session with the id and time of its event. */
type Action = { session: Session; step: Step; id: string; at: number; isLanding: boolean }

function stepEvent({ session, step, id, at, isLanding }: Action): Record<string, unknown> {
  const user = session.person ?? (step.kind === 'identify' ? step.person : null)
  const ids = { id, at: new Date(at), visitor: session.visitor, session: session.id, user: user?.id }
  switch (step.kind) {
    case 'view':
      return nativeEvent({ ...ids, type: 'page_view' }, buildPage(session, step.path, isLanding))
    case 'track':
      return nativeEvent({ ...ids, type: step.event }, step.properties)
    case 'identify':
      return nativeEvent({ ...ids, type: 'identify' }, { email: step.person.email })
    case 'convert': {
      const { totalCents, currency } = step.order
      const order = { order_id: step.order.id, amount: totalCents / 100, currency }
      return nativeEvent({ ...ids, type: 'convert' }, { page: 'https://shop.example/thanks', ...order })
    }
  }
}

function buildPage(session: Session, path: string, isLanding: boolean) {
  const { arrival } = session
  return {
    page: isLanding ? landingUrl(path, arrival) : `https://shop.example${path}`,
    referrer: isLanding ? (arrival.referrer ?? '') : 'https://shop.example/',
  }
}

function stepCall({ session, step, id, at, isLanding }: Action): Record<string, unknown> {
  const ids = { id, at: new Date(at), visitor: session.visitor, user: session.person?.id }
  const context = { sessionId: session.id }
  if (step.kind === 'view') {
    const { page: url, referrer } = buildPage(session, step.path, isLanding)
    const page = { url, path: step.path, referrer }
    return cdpCall(ids, { type: 'page', properties: page, context: { ...context, page } })
  }
  if (step.kind === 'identify') {
    const { email, company } = step.person
    const traits = { email, name: fullName(step.person), ...(company !== null && { company }) }
    return cdpCall({ ...ids, user: step.person.id }, { type: 'identify', traits, context })
  }
  if (step.kind === 'track')
    return cdpCall(ids, { type: 'track', event: step.event, properties: step.properties, context })
  throw new Error('a sale uses the native route')
}
