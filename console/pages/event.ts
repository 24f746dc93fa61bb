import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { isNegative } from '../amount.ts'
import { destinations, inbound, sources } from '../api/admin.ts'
import { conversions, events, reports } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type {
  Conversion,
  Delivery,
  Destination,
  Event,
  EventOutcome,
  EventStatus,
  Receipt,
  ReceivedRequest,
  TimelineEntry,
} from '../api/types.ts'
import { ActionButton } from '../components/form.ts'
import { Badge, EmptyState, ProblemArea, type Tone } from '../components/notice.ts'
import { type Fact, Facts, JsonView, Page, Section, TextView } from '../components/page.ts'
import { Table } from '../components/table.ts'
import { Time } from '../components/time.ts'
import { formatJson, lowerWords, money, number, plural, receivedVia, sentence, signedMoney, words } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { isAdmin, tenant } from '../session.ts'
import { contentOf } from '../summary.ts'
import { tenantFacts } from '../view.ts'
import { LookupForm } from './events.ts'
export const eventPage = definePage(
  'event',
  async ({ route, signal }) => {
    return readOutcome(route.params.id, '', signal)
  },
  ({ data: { outcome, trace, effect }, route }) =>
    h(
      Page,
      { title: outcomeTitle(outcome), actions: replayLink(outcome) },
      outcome ? h(Outcome, { outcome, trace, effect }) : h(UnknownEvent, { id: route.params.id }),
    ),
)

function outcomeTitle(outcome: EventOutcome | null): string {
  if (outcome === null) return 'Event lookup'
  return outcome.event?.event_type ?? (outcome.status === 'dead_letter' ? 'Event not processed' : 'Event')
}

function replayLink(outcome: EventOutcome | null): VNode | false {
  const isOffered = outcome?.status === 'dead_letter' && isAdmin.value
  return (
    isOffered && html`<a class="button main" href=${link('deadLetter', { id: outcome.id })}>View body and replay</a>`
  )
}

const STATUS: Record<EventStatus, { meaning: string; tone: Tone }> = {
  queued: { meaning: 'Accepted and waiting to be processed.', tone: 'neutral' },
  deferred: { meaning: 'Accepted and deferred until its source is below its rate limit.', tone: 'neutral' },
  stored: { meaning: '', tone: 'good' },
  duplicate: {
    meaning: 'An event with the same id was received earlier. This one has no effect.',
    tone: 'neutral',
  },
  dead_letter: { meaning: 'It could not be processed.', tone: 'bad' },
  dropped: { meaning: 'Dropped because its source was over its rate limit.', tone: 'bad' },
  suppressed: {
    meaning: 'About a person who is not tracked. Nothing was stored.',
    tone: 'neutral',
  },
}

type OutcomeProps = { outcome: EventOutcome; trace: EventTrace | null; effect: Effect }

/** The outcome of an event and its content. */
function Outcome({ outcome, trace, effect }: OutcomeProps): VNode {
  const { event, status, id } = outcome
  const { meaning, tone } = STATUS[status]
  return html`
    ${h(TraceSteps, { outcome, trace })}
    ${h(Facts, {
      facts: [
        [
          'Status',
          html`${h(Badge, { text: status === 'stored' ? 'processed' : lowerWords(status), tone })} ${meaning}`,
        ],
        outcome.reason && ['Reason', status === 'stored' ? sentence(outcome.reason) : outcome.reason],
        ['Id', html`<code>${id}</code>`],
        ['Received', h(Time, { at: outcome.received_at })],
        event && ['Occurred', h(Time, { at: event.occurred_at })],
        effectFact('Effect on sales', saleEffect(effect, outcome)),
        effectFact('Effect on MRR', mrrEffect(effect)),
        outcome.attempts !== null && ['Attempts', String(outcome.attempts)],
        outcome.next_attempt_at && ['Next attempt', h(Time, { at: outcome.next_attempt_at })],
        outcome.failed_at && ['Failed', h(Time, { at: outcome.failed_at })],
        eventFact('Duplicate of', outcome.duplicate_of),
        outcome.replayed_at && ['Replayed', h(Time, { at: outcome.replayed_at })],
        eventFact('Replayed as', outcome.replayed_as),
      ],
    })}
    ${event && h(Details, { event, source: trace?.source ?? null })}
    ${h(ReceiptsAndDeliveries, { outcome, trace })}
    ${h(RawAndNormalized, { outcome, trace })}
  `
}

type Moved = TimelineEntry & { currency: string; customer: string }

/** What an event changed. `isBilling`: whether it is about an account with subscriptions. */
type Effect = { sale: Conversion | null; movements: Moved[]; isBilling: boolean }

const MAX_TIMELINE = 100

/** The sale that the event reports, and the movements of MRR that it caused, in every currency. */
async function readEffect(outcome: EventOutcome | null, signal: AbortSignal): Promise<Effect> {
  const none = { sale: null, movements: [], isBilling: false }
  if (outcome?.event == null) return none
  const { event, conversion } = outcome
  const customer = contentOf(event.payload).customer
  const codes = typeof customer === 'string' && event.verified ? (tenantFacts.peek()?.currencies ?? []) : []
  const [sale, ...accounts] = await Promise.all([
    conversion ? nullOn(403, nullOn(404, conversions.find(event.id, signal))) : null,
    ...codes.map(currency =>
      nullOn(
        403,
        nullOn(404, reports.account({ currency, customer: String(customer), page_size: MAX_TIMELINE }, signal)),
      ),
    ),
  ])
  const known = accounts.filter(account => account !== null)
  const movements = known.flatMap(({ currency, summary, timeline }) =>
    timeline.results
      .filter(({ event_id, mrr_delta }) => event_id === event.id && mrr_delta !== null)
      .map(entry => ({ ...entry, currency, customer: summary.customer })),
  )
  return { sale, movements, isBilling: known.some(({ items }) => items.count > 0) }
}

function effectFact(label: string, value: ComponentChildren): Fact | null {
  return value === null ? null : [label, value]
}

function saleEffect({ sale }: Effect, { conversion, event }: EventOutcome): ComponentChildren {
  if (sale !== null)
    return html`<a href=${link('conversion', { id: sale.id })}>${sale.amount === null ? 'A sale without an amount' : `A sale of ${money(sale.amount, sale.currency)}`}</a>`
  if (conversion)
    return html`Reports <a href=${link('conversions')}>a sale</a> that another event or record also reports. The sale counts once.`
  return event ? 'None' : null
}

function mrrEffect({ movements, isBilling }: Effect): ComponentChildren {
  if (movements.length === 0) return isBilling ? 'None' : null
  return movements.map(
    ({ mrr_delta, movement_type, currency, customer }, index) =>
      html`${index > 0 && ', '}<a href=${link('account', { customer, currency })}>${signedMoney(mrr_delta, currency)}</a> ${h(Badge, { text: lowerWords(movement_type ?? ''), tone: mrr_delta !== null && isNegative(mrr_delta) ? 'bad' : 'good' })}`,
  )
}

function eventFact(label: string, id: string | null): Fact | null {
  return id === null ? null : [label, html`<a href=${link('event', { id })}><code>${id}</code></a>`]
}

function Details({ event, source }: { event: Event; source: string | null }): VNode {
  return html`
    ${h(
      Section,
      { title: 'Person and source' },
      h(Facts, {
        facts: [
          ['Received via', html`${receivedVia(event.source_type)} ${h(Authentication, { event })}`],
          event.source_config_id && ['Source', sourceLink(event.source_config_id, source)],
          event.inbound_event_id && ["Sender's id", event.inbound_event_id],
          event.provider_event_id &&
            event.provider_event_id !== event.inbound_event_id && ["Provider's id", event.provider_event_id],
          event.visitor && ['Visitor', event.visitor],
          event.session_id && ['Session', event.session_id],
          event.profile_id && ['Profile', profileLink(event.profile_id)],
          event.contact_id && [
            'Contact',
            html`<a href=${link('record', { type: 'contacts', id: event.contact_id })}>${event.contact_id}</a>`,
          ],
        ],
      }),
    )}
  `
}

/** How the sender proved who it is. A public tracking key proves nothing. */
function Authentication({ event: { source_config_id: source, verified, meta } }: { event: Event }): VNode {
  if (!verified) return h(Badge, { text: 'public tracking key' })
  if (source === null) return h(Badge, { text: 'server key', tone: 'good' })
  const isSigned = 'signature' in meta
  return h(Badge, { text: isSigned ? 'signature verified' : 'authenticated by token', tone: 'good' })
}

function sourceLink(id: string, name: string | null): ComponentChildren {
  return isAdmin.value ? html`<a href=${link('source', { id })}>${name ?? id}</a>` : id
}

function profileLink(id: string): ComponentChildren {
  return isAdmin.value ? html`<a href=${link('person', { id })}>${id}</a>` : id
}

function UnknownEvent({ id }: { id: string }): VNode {
  return h(EmptyState, {
    title: 'Event not found.',
    text: html`<span>No event has the id <code>${id}</code>. It was never accepted, has expired, or was deleted when a person was erased.</span>`,
    action: html`<a href=${link('events')}>All events</a>`,
  })
}

/** The deliveries to one destination. */
type Sent = { id: string; name: string; last: Delivery; attempts: number }

/** What only operators may read: the request, its receipts and its deliveries. */
type EventTrace = {
  request: ReceivedRequest
  receipts: Receipt[]
  sent: Sent[]
  destinations: number
  /** The name of its source. */
  source: string | null
}

const MAX_RECEIPTS = 20
const MAX_DESTINATIONS = 20

/** The event, then everything about it at once. */
async function readOutcome(
  id: string,
  source: string,
  signal: AbortSignal,
): Promise<Omit<OutcomeProps, 'outcome'> & { outcome: EventOutcome | null }> {
  const whose = isAdmin.peek() ? tenant.peek() : null
  const listed = whose === null ? null : Promise.all([destinations.list(whose, signal), sources.list(whose, signal)])
  listed?.catch(() => {})
  const outcome = await findOutcome(id, source, signal)
  const [{ results: known }, { results: senders }] = (await listed) ?? [{ results: [] }, { results: [] }]
  const name = senders.find(sender => sender.id === outcome?.event?.source_config_id)?.name ?? null
  const [trace, effect] = await Promise.all([readTrace(outcome, known, name, signal), readEffect(outcome, signal)])
  return { outcome, trace, effect }
}

async function readTrace(
  outcome: EventOutcome | null,
  known: Destination[],
  source: string | null,
  signal: AbortSignal,
): Promise<EventTrace | null> {
  const id = tenant.peek()
  if (outcome === null || !isAdmin.peek() || id === null) return null
  const [request, receipts, sent] = await Promise.all([
    inbound.request(id, outcome.id, signal),
    readReceipts(id, outcome, signal),
    readSent(known, outcome, signal),
  ])
  return { request, receipts, ...sent, source }
}

/** All receipts of the same sender's id. */
async function readReceipts(tenantId: string, { event }: EventOutcome, signal: AbortSignal) {
  const { source_config_id: source = null, inbound_event_id: sentAs = null } = event ?? {}
  if (source === null || sentAs === null) return []
  const query = { tenant: tenantId, source, inbound_event_id: sentAs, limit: MAX_RECEIPTS }
  return (await inbound.receipts(query, signal)).results
}

async function readSent(results: Destination[], { id, event }: EventOutcome, signal: AbortSignal) {
  if (!event) return { sent: [], destinations: 0 }
  const lists = await Promise.all(
    results.slice(0, MAX_DESTINATIONS).map(async ({ id: destination, name }) => {
      const query = { message: `msg_${id}`, limit: MAX_RECEIPTS }
      const attempts = (await destinations.deliveries(destination, query, signal)).results
      return attempts.map(last => ({ id: destination, name, last, attempts: attempts.length })).slice(0, 1)
    }),
  )
  return { sent: lists.flat(), destinations: results.length }
}

type Step = { title: string; tone: Tone; text: ComponentChildren; at?: string | null | undefined }

/** Received, normalized, processed, delivered. */
function TraceSteps({ outcome, trace }: { outcome: EventOutcome; trace: EventTrace | null }): VNode {
  return html`
    <ol class="trace">
      ${traceSteps(outcome, trace).map(
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

function traceSteps(outcome: EventOutcome, trace: EventTrace | null): Step[] {
  const { event, status, reason } = outcome
  const isRejected = status === 'dead_letter' && outcome.attempts === 0
  const from = event ? `From ${trace?.source ?? event.source_config_id ?? receivedVia(event.source_type)}` : 'Accepted'
  const received: Step = { title: 'Received', tone: 'good', text: from, at: outcome.received_at }
  const normalized: Step = event
    ? { title: 'Normalized', tone: 'good', text: event.event_type }
    : {
        title: 'Normalized',
        tone: isRejected ? 'bad' : 'neutral',
        text: isRejected ? reason : 'See the status below',
      }
  return [received, normalized, processedStep(outcome, isRejected), ...(trace ? [deliveredStep(trace)] : [])]
}

function processedStep({ status, reason, conversion }: EventOutcome, isRejected: boolean): Step {
  const title = 'Processed'
  if (status === 'stored')
    return {
      title,
      tone: reason === null ? 'good' : 'neutral',
      text: reason === null ? (conversion ? 'Counts as a conversion' : 'Stored as an event') : sentence(reason),
    }
  if (isRejected) return { title, tone: 'neutral', text: 'Not reached' }
  const tone = status === 'dead_letter' || status === 'dropped' ? 'bad' : 'neutral'
  return { title, tone, text: reason ?? words(status) }
}

function deliveredStep({ sent, destinations: all }: EventTrace): Step {
  const title = 'Delivery'
  if (all === 0) return { title, tone: 'neutral', text: 'No destinations' }
  if (sent.length === 0) return { title, tone: 'neutral', text: 'No delivery attempts' }
  const pending = sent.filter(({ last }) => last.outcome !== 'delivered')
  const isFailed = pending.some(({ last }) => last.outcome === 'failed')
  if (pending.length > 0)
    return {
      title,
      tone: isFailed ? 'bad' : 'neutral',
      text: `Not delivered to ${plural(pending.length, 'destination')}`,
    }
  return {
    title,
    tone: 'good',
    text: `To ${plural(sent.length, 'destination')}`,
    at: sent[0]?.last.attempted_at,
  }
}

/** The request beside the normalized event. */
function RawAndNormalized({
  outcome: { id, event },
  trace,
}: {
  outcome: EventOutcome
  trace: EventTrace | null
}): VNode {
  if (!event) return html`${h(RawSection, { id, trace })}`
  const { payload, headers, meta } = event
  return html`
    <div class="beside">
      ${h(RawSection, { id, trace })}
      ${h(Section, { title: 'Normalized' }, h(JsonView, { value: { payload, headers, meta }, label: 'Normalized' }))}
    </div>
  `
}

const MISSING = {
  expired: 'The request is no longer in the log, which keeps requests for a few days (KONTOR_LOG_RETENTION).',
  erased: 'The whole request was deleted because a person named in it was erased. The normalized event is kept.',
  unknown: 'The request is not in the log.',
}

function RawSection({ id, trace }: { id: string; trace: EventTrace | null }): VNode | null {
  const whole = useSignal<ReceivedRequest | null>(null)
  const problem = useSignal<unknown>(null)
  if (!trace) return null
  const { missing, batch, body, bytes, truncated, edited } = whole.value ?? trace.request
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
    body !== null && h(TextView, { text: formatJson(body), label: title }),
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
const outcomeBadge = (outcome: string) => h(Badge, { text: lowerWords(outcome), tone: TONES[outcome] ?? 'neutral' })

/** All receipts of the event, and its deliveries. */
function ReceiptsAndDeliveries({ outcome, trace }: { outcome: EventOutcome; trace: EventTrace | null }): VNode | null {
  if (!trace) return null
  return html`
    ${
      trace.receipts.length > 1 &&
      h(
        Section,
        { title: `Duplicates: received ${plural(trace.receipts.length, 'time')}` },
        h(Table<Receipt>, {
          caption: 'Duplicates',
          columns: [
            {
              label: 'Event',
              cell: ({ id }) =>
                id === outcome.id ? 'this event' : html`<a href=${link('event', { id })}><code>${id}</code></a>`,
              kind: 'long',
            },
            { label: 'Outcome', cell: row => outcomeBadge(row.outcome) },
            { label: 'Received', cell: ({ received_at }) => h(Time, { at: received_at }) },
          ],
          rows: trace.receipts,
          csv: { rows: trace.receipts, name: 'receipts' },
          rowKey: ({ id, received_at }) => `${id} ${received_at}`,
        }),
      )
    }
    ${
      trace.sent.length > 0 &&
      h(
        Section,
        { title: 'Deliveries' },
        h(Table<Sent>, {
          caption: 'Deliveries',
          columns: [
            {
              label: 'Destination',
              cell: ({ id, name }) => html`<a href=${link('destination', { id })}>${name}</a>`,
              kind: 'long',
            },
            {
              label: 'Outcome',
              cell: ({ last }) => [outcomeBadge(last.outcome), ' ', last.status ?? last.error],
            },
            { label: 'Attempts', cell: ({ attempts }) => number(attempts), kind: 'number' },
            { label: 'Last attempt', cell: ({ last }) => h(Time, { at: last.attempted_at }) },
          ],
          rows: trace.sent,
          csv: { rows: trace.sent.map(({ name, last }) => ({ destination: name, ...last })), name: 'sent' },
          rowKey: ({ id }) => id,
        }),
      )
    }
  `
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Finds an event by its Kontor id, else by the id that its sender gave it. */
async function findOutcome(id: string, source: string, signal: AbortSignal): Promise<EventOutcome | null> {
  if (id === '') return null
  const found = UUID.test(id) && source === '' ? await nullOn(404, events.find(id, signal)) : null
  return found ?? nullOn(404, events.lookup({ event_id: id, source_config_id: source }, signal))
}

/** #/events/lookup?id=…&source=… */
const readQuery = (query: URLSearchParams) => ({
  id: query.get('id') ?? '',
  source: query.get('source') ?? '',
})

export const eventLookupPage = definePage(
  'eventLookup',
  async ({ route, signal }) => {
    const { id, source } = readQuery(route.query)
    return readOutcome(id, source, signal)
  },
  ({ data: { outcome, trace, effect }, route }) => {
    const { id, source } = readQuery(route.query)
    return h(
      Page,
      {
        title: outcomeTitle(outcome),
        actions: replayLink(outcome),
        lead: id === '' && 'Shows whether an event was received, how it was processed, and why it failed.',
      },
      h(LookupForm, { id, source }),
      outcome ? h(Outcome, { outcome, trace, effect }) : id !== '' && h(UnknownEvent, { id }),
    )
  },
)
