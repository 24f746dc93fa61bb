import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { destinations, inbound } from '../../api/admin.ts'
import type { Delivery, EventOutcome, Receipt, ReceivedRequest } from '../../api/types.ts'
import { ActionButton } from '../../components/form.ts'
import { Badge, ProblemArea, type Tone } from '../../components/notice.ts'
import { JsonView, Section, TextView } from '../../components/page.ts'
import { Table } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { laidOut, lowerWords, number, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { isAdmin, tenant } from '../../session.ts'

/** What became of it at one destination. */
type Sent = { id: string; name: string; last: Delivery; attempts: number }

/** What only operators may read: the request, what was said again, and where it went. */
export type Way = { request: ReceivedRequest; receipts: Receipt[]; sent: Sent[]; destinations: number }

const MOST_RECEIPTS = 20
const MOST_DESTINATIONS = 20

export async function readWay(outcome: EventOutcome | null, signal: AbortSignal): Promise<Way | null> {
  const id = tenant.peek()
  if (outcome === null || !isAdmin.peek() || id === null) return null
  const [request, receipts, sent] = await Promise.all([
    inbound.request(id, outcome.id, signal),
    readReceipts(id, outcome, signal),
    readSent(id, outcome, signal),
  ])
  return { request, receipts, ...sent }
}

/** Every time that its sender told it. */
async function readReceipts(tenantId: string, { event }: EventOutcome, signal: AbortSignal) {
  const { source_config_id: source = null, inbound_event_id: sentAs = null } = event ?? {}
  if (source === null || sentAs === null) return []
  const query = { tenant: tenantId, source, inbound_event_id: sentAs, limit: MOST_RECEIPTS }
  return (await inbound.receipts(query, signal)).results
}

async function readSent(tenantId: string, { id, event }: EventOutcome, signal: AbortSignal) {
  if (!event) return { sent: [], destinations: 0 }
  const { results } = await destinations.list(tenantId, signal)
  const lists = await Promise.all(
    results.slice(0, MOST_DESTINATIONS).map(async ({ id: destination, name }) => {
      const query = { message: `msg_${id}`, limit: MOST_RECEIPTS }
      const attempts = (await destinations.deliveries(destination, query, signal)).results
      return attempts.map(last => ({ id: destination, name, last, attempts: attempts.length })).slice(0, 1)
    }),
  )
  return { sent: lists.flat(), destinations: results.length }
}

type Step = { title: string; tone: Tone; text: ComponentChildren; at?: string | null | undefined }

/** Received, normalized, applied, delivered: how far it came. */
export function WaySteps({ outcome, way }: { outcome: EventOutcome; way: Way | null }): VNode {
  return html`
    <ol class="way">
      ${stepsOf(outcome, way).map(
        ({ title, tone, text, at }) => html`
          <li key=${title} class=${tone}>
            <strong>${title}</strong>
            <span>${text}</span>
            ${at && html`<span class="faint">${h(Time, { at })}</span>`}
          </li>
        `,
      )}
    </ol>
  `
}

function stepsOf(outcome: EventOutcome, way: Way | null): Step[] {
  const { event, status, reason } = outcome
  const isRejected = status === 'dead_letter' && outcome.attempts === 0
  const source = event?.source_config_id ?? null
  const from = event ? `from ${source ?? event.source_type}` : 'accepted'
  const received: Step = { title: 'Received', tone: 'good', text: from, at: outcome.received_at }
  const normalized: Step = event
    ? { title: 'Normalized', tone: 'good', text: event.event_type, at: event.occurred_at }
    : { title: 'Normalized', tone: isRejected ? 'bad' : 'neutral', text: isRejected ? reason : 'see below' }
  return [received, normalized, appliedStep(outcome, isRejected), ...(way ? [deliveredStep(way)] : [])]
}

function appliedStep({ status, reason, conversion }: EventOutcome, isRejected: boolean): Step {
  const title = 'Applied'
  if (status === 'stored')
    return {
      title,
      tone: 'good',
      text: reason ?? (conversion ? 'counts as a conversion' : 'stored as an event'),
    }
  if (isRejected) return { title, tone: 'neutral', text: 'not reached' }
  const tone = status === 'dead_letter' || status === 'dropped' ? 'bad' : 'neutral'
  return { title, tone, text: reason ?? lowerWords(status) }
}

function deliveredStep({ sent, destinations: all }: Way): Step {
  const title = 'Delivered'
  if (all === 0) return { title, tone: 'neutral', text: 'no destinations' }
  if (sent.length === 0) return { title, tone: 'neutral', text: 'not selected by any destination' }
  const failing = sent.filter(({ last }) => last.outcome !== 'delivered').length
  if (failing > 0) return { title, tone: 'bad', text: `pending for ${plural(failing, 'destination')}` }
  return {
    title,
    tone: 'good',
    text: `to ${plural(sent.length, 'destination')}`,
    at: sent[0]?.last.attempted_at,
  }
}

/** What came in, beside what was made of it. */
export function RawAndNormalized({
  outcome: { id, event },
  way,
}: {
  outcome: EventOutcome
  way: Way | null
}): VNode {
  if (!event) return html`${h(RawSection, { id, way })}`
  const { payload, headers, meta } = event
  return html`
    <div class="beside">
      ${h(RawSection, { id, way })}
      ${h(Section, { title: 'Normalized' }, h(JsonView, { value: { payload, headers, meta }, label: 'Normalized' }))}
    </div>
  `
}

const MISSING = {
  expired: 'The request is no longer in the log, which keeps requests for a few days (KONTOR_LOG_RETENTION).',
  erased:
    'The whole request was deleted because a person named in it was erased. The normalized event is kept.',
  unknown: 'The request is not in the log.',
}

function RawSection({ id, way }: { id: string; way: Way | null }): VNode | null {
  const whole = useSignal<ReceivedRequest | null>(null)
  const problem = useSignal<unknown>(null)
  if (!way) return null
  const { missing, batch, body, bytes, truncated, edited } = whole.value ?? way.request
  const title = edited ? 'Edited request' : 'Original request'
  const showAll = async () => {
    whole.value = await inbound.request(tenant.peek() ?? '', id, undefined, true)
  }
  return h(
    Section,
    { title },
    edited &&
      html`<p>Edited by ${edited.by}, ${h(Time, { at: edited.at })}. The${' '}
        <a href=${link('deadLetter', { id: edited.dead_letter })}>dead letter</a> keeps the original until it expires.</p>`,
    missing && html`<p class="faint">${MISSING[missing]}</p>`,
    body !== null && h(TextView, { text: laidOut(body), label: title }),
    truncated && html`<p class="faint">Truncated: the request has ${number(bytes)} bytes.</p>`,
    batch &&
      whole.value === null &&
      html`<p class="faint">
        Item ${number(batch.index + 1)} of ${number(batch.items)} in the request.${' '}
        ${h(ActionButton, { label: 'Show whole request', run: showAll, problem, kind: 'link' })}
      </p>`,
    h(ProblemArea, { problem }),
  )
}

const TONES: Record<string, Tone> = {
  processed: 'good',
  delivered: 'good',
  dead_letter: 'bad',
  failed: 'bad',
}
const badgeOf = (outcome: string) =>
  h(Badge, { text: lowerWords(outcome), tone: TONES[outcome] ?? 'neutral' })

/** Every time that the sender told of it, and every destination that was told. */
export function ToldAndSent({ outcome, way }: { outcome: EventOutcome; way: Way | null }): VNode | null {
  if (!way) return null
  return html`
    ${
      way.receipts.length > 1 &&
      h(
        Section,
        { title: `Received ${plural(way.receipts.length, 'time')}` },
        h(Table<Receipt>, {
          caption: 'Receipts with the same id',
          columns: [
            {
              label: 'Event',
              cell: ({ id }) =>
                id === outcome.id
                  ? 'this one'
                  : html`<a href=${link('event', { id })}><code>${id}</code></a>`,
              kind: 'long',
            },
            { label: 'Outcome', cell: row => badgeOf(row.outcome) },
            { label: 'Received', cell: ({ received_at }) => h(Time, { at: received_at }) },
          ],
          rows: way.receipts,
          csv: { rows: way.receipts, name: 'receipts' },
          keyOf: ({ id, received_at }) => `${id} ${received_at}`,
        }),
      )
    }
    ${
      way.sent.length > 0 &&
      h(
        Section,
        { title: 'Sent to' },
        h(Table<Sent>, {
          caption: 'Destinations',
          columns: [
            {
              label: 'Destination',
              cell: ({ id, name }) => html`<a href=${link('destination', { id })}>${name}</a>`,
              kind: 'long',
            },
            { label: 'Outcome', cell: ({ last }) => [badgeOf(last.outcome), ' ', last.status ?? last.error] },
            { label: 'Attempts', cell: ({ attempts }) => number(attempts), kind: 'number' },
            { label: 'Last attempt', cell: ({ last }) => h(Time, { at: last.attempted_at }) },
          ],
          rows: way.sent,
          csv: { rows: way.sent.map(({ name, last }) => ({ destination: name, ...last })), name: 'sent' },
          keyOf: ({ id }) => id,
        }),
      )
    }
  `
}
