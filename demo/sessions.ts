import { type Arrival, landingUrl } from './channels.ts'
import type { Order } from './orders.ts'
import { fullName, type Person } from './people.ts'
import { isoTime, numbered } from './year.ts'

export type Step =
  | { kind: 'view'; path: string }
  | { kind: 'track'; event: string; properties: Record<string, unknown> }
  | { kind: 'identify'; person: Person }
  | { kind: 'convert'; order: Order }

/** One visit. Its end is known; the steps are spaced evenly before it. */
export type Session = {
  id: string
  visitor: string
  arrival: Arrival
  /** Set where the visitor is logged in. */
  person: Person | null
  endsAt: number
  steps: Step[]
}

/** One event, and the route it is sent to: the CDP's batches, or the native route. */
export type VisitEvent = { at: number; route: 'cdp' | 'native'; body: Record<string, unknown> }

const STEP_MS = 40_000

/** The shop's site sends through a CDP; its checkout, and one visit in fifty, use the native route. */
export function eventsOf(session: Session, index: number): VisitEvent[] {
  const isNative = index % 50 === 0
  return session.steps.map((step, i) => {
    const at = session.endsAt - (session.steps.length - 1 - i) * STEP_MS
    const native = isNative || step.kind === 'convert'
    const isLanding = i === 0
    const action = { session, step, id: `${session.id}-${numbered(i + 1, 2)}`, at, isLanding }
    return { at, route: native ? 'native' : 'cdp', body: native ? nativeEvent(action) : cdpCall(action) }
  })
}

/** One step of a session, with what its event needs. */
type Action = { session: Session; step: Step; id: string; at: number; isLanding: boolean }

function nativeEvent({ session, step, id, at, isLanding }: Action): Record<string, unknown> {
  return {
    ...nativeContent(session, step, isLanding),
    event_id: id,
    visitor: session.visitor,
    session_id: session.id,
    ...(session.person && { user_id: session.person.id }),
    occurred_at: isoTime(at),
  }
}

function nativeContent(session: Session, step: Step, isLanding: boolean): Record<string, unknown> {
  switch (step.kind) {
    case 'view':
      return { event_type: 'page_view', data: pageOf(session, step.path, isLanding) }
    case 'track':
      return { event_type: step.event, data: step.properties }
    case 'identify':
      return { event_type: 'identify', user_id: step.person.id, data: { email: step.person.email } }
    case 'convert': {
      const { id, totalCents, currency } = step.order
      const data = { page: 'https://shop.example/thanks', order_id: id, amount: totalCents / 100, currency }
      return { event_type: 'convert', data }
    }
  }
}

function pageOf(session: Session, path: string, isLanding: boolean) {
  const { arrival } = session
  return {
    page: isLanding ? landingUrl(path, arrival) : `https://shop.example${path}`,
    referrer: isLanding ? (arrival.referrer ?? '') : 'https://shop.example/',
  }
}

function cdpCall({ session, step, id, at, isLanding }: Action): Record<string, unknown> {
  return {
    messageId: id,
    anonymousId: session.visitor,
    ...(session.person && { userId: session.person.id }),
    timestamp: isoTime(at),
    ...cdpContent(session, step, isLanding),
  }
}

function cdpContent(session: Session, step: Step, isLanding: boolean): Record<string, unknown> {
  const context = { sessionId: session.id }
  if (step.kind === 'view') {
    const { page: url, referrer } = pageOf(session, step.path, isLanding)
    const page = { url, path: step.path, referrer }
    return { type: 'page', properties: page, context: { ...context, page } }
  }
  if (step.kind === 'identify') {
    const { id, email, company } = step.person
    const traits = { email, name: fullName(step.person), ...(company !== null && { company }) }
    return { type: 'identify', userId: id, traits, context }
  }
  if (step.kind === 'track') return { type: 'track', event: step.event, properties: step.properties, context }
  throw new Error('a sale goes through the native route')
}
