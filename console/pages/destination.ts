import { type ReadonlySignal, type Signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { destinations } from '../api/admin.ts'
import type {
  Delivery,
  DeliveryOutcome,
  Destination,
  DestinationActivity,
  DestinationSettings,
  DestinationTest,
  List,
  Role,
  SentMessage,
} from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { askConfirmation, showDialog } from '../components/dialog.ts'
import { ActionButton, Form, SelectFilter, TextField } from '../components/form.ts'
import { prependNewest, useLiveData } from '../components/live-data.ts'
import { Badge, EmptyState, ProblemArea, type Tone } from '../components/notice.ts'
import { activityTile, Facts, Page, Section, TextView, Tiles } from '../components/page.ts'
import { type Column, GrowingTable } from '../components/table.ts'
import { Breakable, Credentials } from '../components/text.ts'
import { Ago, Time } from '../components/time.ts'
import { formatJson, NONE, number, plural } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link, type Route } from '../router.ts'
import { DestinationForm, DestinationState, describeData, SecretUse } from './destinations.ts'

type Shown = { destination: Destination; deliveries: List<Delivery>; activity: DestinationActivity }

async function read({ params, query }: Route<'destination'>, signal: AbortSignal): Promise<Shown> {
  const [destination, deliveries, activity] = await Promise.all([
    destinations.find(params.id, signal),
    destinations.deliveries(params.id, { outcome: query.get('outcome'), limit: ROWS }, signal),
    destinations.activity(params.id, signal),
  ])
  return { destination, deliveries, activity }
}

export const destinationPage = definePage(
  'destination',
  ({ route, signal }) => read(route, signal),
  ({ data, route, refresh }) => {
    const { destination, deliveries, activity } = useLiveData(data, {
      next: async (before, signal) => {
        const now = await read(route, signal)
        return { ...now, deliveries: prependNewest(before.deliveries, now.deliveries, deliveryKey) }
      },
    })
    const problem = useSignal<unknown>(null)
    const result = useSignal<ActionResult | null>(null)
    const change = async (settings: DestinationSettings) => {
      await destinations.change(destination.id, settings)
      await refresh()
    }
    return h(
      Page,
      {
        title: destination.name,
        actions: h(DestinationActions, { destination, problem, result, refresh }),
      },
      h(ProblemArea, { problem }),
      h(ResultArea, { result }),
      h(Tiles, {
        isSmall: true,
        tiles: [
          activityTile('Delivered (24 h)', activity.delivered),
          activityTile('Failed attempts (24 h)', activity.failed, true),
        ],
      }),
      h(DestinationFacts, { destination }),
      h(
        Section,
        { title: 'Deliveries' },
        h(DeliveryTable, {
          ...{ id: destination.id, first: deliveries, outcome: route.query.get('outcome') },
        }),
      ),
      destination.enabled && h(Section, { title: 'Replay' }, h(ReplayForm, { destination, result, refresh })),
      h(
        Section,
        { title: 'Settings' },
        html`<details>
          <summary>Edit settings</summary>
          ${h(DestinationForm, { submit: 'Save', destination, run: change })}
        </details>`,
      ),
    )
  },
)

function DestinationFacts({ destination }: { destination: Destination }): VNode {
  const { health, disabled_reason: reason, headers } = destination
  const names = Object.keys(headers)
  return h(Facts, {
    facts: [
      ['Status', [h(DestinationState, { destination }), reason && ` ${reason}`]],
      health.failing_since && [
        'Failing since',
        html`${h(Ago, { at: health.failing_since })}${health.last_error && `: ${health.last_error}`}`,
      ],
      ['Pending deliveries', number(health.pending)],
      ['Last delivery', health.last_success_at ? h(Ago, { at: health.last_success_at }) : 'never'],
      ['URL', destination.url],
      ['Sends', describeData(destination)],
      destination.secrets.length > 0 && ['Secrets', h(Credentials, { credentials: destination.secrets })],
      names.length > 0 && ['Headers', names.join(', ')],
      ['Id', html`<code>${destination.id}</code>`],
    ],
  })
}

const OVERLAP_HOURS = 24

const WHAT_DISABLING_DOES =
  'Pending messages are kept and sent when the destination is enabled again. Data processed while it is disabled is not sent automatically. To send it later, use Replay with the time of disabling. Messages are kept for 30 days by default.'

/** The result of an action. It stays while the page is refreshed. */
type ActionResult =
  | { kind: 'secret'; secret: string }
  | { kind: 'test'; test: DestinationTest }
  | { kind: 'replay'; queued: number }

type ActionProps = {
  destination: Destination
  result: Signal<ActionResult | null>
  refresh(): Promise<void>
}

function DestinationActions({
  destination: { id, name, enabled, health, secrets },
  problem,
  result,
  refresh,
}: ActionProps & { problem: Signal<unknown> }): VNode {
  const test = async () => {
    const outcome = await destinations.test(id)
    result.value = { kind: 'test', test: outcome }
    toast(testSummary(outcome))
  }
  const retry = async () => {
    const { retried } = await destinations.retry(id)
    toast(`${plural(retried, 'message')} will be retried now`)
    await refresh()
  }
  const rotate = async () => {
    const text = `The new secret is shown only once. For ${OVERLAP_HOURS} hours, messages are also signed with the previous secret.`
    if (!(await askConfirmation({ title: 'Rotate the secret?', text, yes: 'Rotate' }))) return
    const { secret } = await destinations.rotate(id, OVERLAP_HOURS)
    result.value = { kind: 'secret', secret: secret! }
    toast('The new secret is shown')
    await refresh()
  }
  const toggle = async () => {
    const question = { title: `Disable ${name}?`, text: WHAT_DISABLING_DOES, yes: 'Disable' }
    if (enabled && !(await askConfirmation(question))) return
    await destinations.setEnabled(id, !enabled)
    await refresh()
  }
  const remove = async () => {
    const text = 'Its pending messages are deleted too. This cannot be undone.'
    if (!(await askConfirmation({ title: `Delete ${name}?`, text, yes: 'Delete' }))) return
    await destinations.remove(id)
    go(link('destinations'))
  }
  const button = (label: string, needs: Role, run: () => unknown) => h(ActionButton, { label, needs, run, problem })
  return html`
    ${enabled && health.pending > 0 && button('Retry now', 'operator', retry)}
    ${button('Send test message', 'operator', test)}
    ${secrets.length > 0 && button('Rotate secret', 'admin', rotate)}
    ${button(enabled ? 'Disable' : 'Enable', 'operator', toggle)}
    ${button('Delete', 'admin', remove)}
  `
}

function ReplayForm({ destination, result, refresh }: ActionProps): VNode {
  const replay = async ({ since }: { since: string }) => {
    if (since === '') throw new Error('Enter a start time.')
    const { queued } = await destinations.replay(destination.id, new Date(since).toISOString())
    result.value = { kind: 'replay', queued }
    toast(`${plural(queued, 'message')} will be sent again`)
    await refresh()
  }
  return html`
    <p>Sends all messages since the given time again, delivered or not, with their original ids.</p>
    ${h(
      Form<'since'>,
      { submit: 'Replay', needs: 'operator', layout: 'filter', run: replay },
      h(TextField, { id: 'since', label: 'Since', type: 'datetime-local' }),
    )}
  `
}

function ResultArea({ result }: { result: ReadonlySignal<ActionResult | null> }): VNode | null {
  const shown = result.value
  if (shown === null) return null
  if (shown.kind === 'test') return h(TestResult, shown)
  if (shown.kind === 'replay') return html`<p class="notice">${plural(shown.queued, 'message')} will be sent again.</p>`
  return html`
    <div class="once">
      <p>
        The new secret is shown only once. Save it now. For ${OVERLAP_HOURS} hours, messages are also signed with the previous secret.
      </p>
      ${h(SecretUse, { secret: shown.secret })}
    </div>
  `
}

function testSummary({ ok }: DestinationTest): string {
  return ok ? 'The test message was delivered.' : 'The test message was not delivered.'
}

function TestResult({ test }: { test: DestinationTest }): VNode {
  const { status, error, response, duration_ms } = test
  const answer = status === null ? 'No response' : `Response ${status}`
  return html`
    <div class=${test.ok ? 'once' : 'problem'} role=${test.ok ? null : 'alert'}>
      <p><strong>${testSummary(test)}</strong> ${answer} after ${number(duration_ms)} ms${error ? `: ${error}` : '.'}</p>
      ${response && h(TextView, { text: response, label: 'Start of the response' })}
    </div>
  `
}

const ROWS = 20

const OUTCOMES = [
  ['', 'All outcomes'],
  ['delivered', 'Delivered'],
  ['retrying', 'Retrying'],
  ['failed', 'Failed'],
] as const
const TONES: Record<DeliveryOutcome, Tone> = { delivered: 'good', retrying: 'neutral', failed: 'bad' }

type DeliveryTableProps = { id: string; first: List<Delivery>; outcome: string | null }

/** Every delivery attempt with its response. */
function DeliveryTable({ id, first, outcome }: DeliveryTableProps): VNode {
  return html`
    ${h(SelectFilter, {
      id: 'outcome',
      label: 'Outcome',
      options: OUTCOMES,
      value: outcome ?? '',
      onChange: chosen => go(link('destination', { id }, { outcome: chosen })),
    })}
    ${h(GrowingTable<Delivery>, {
      caption: 'Deliveries',
      columns: columns(id),
      rowKey: deliveryKey,
      first,
      csv: { api: 'admin', path: `/destinations/${id}/deliveries`, query: { outcome }, name: 'deliveries' },
      load: cursor => destinations.deliveries(id, { outcome, limit: ROWS, cursor }),
      empty: outcome
        ? h(EmptyState, { title: 'No deliveries with this outcome.' })
        : h(EmptyState, {
            title: 'No messages sent yet.',
            text: 'New data is sent as soon as it is processed. Use “Send test message” above to check the connection.',
          }),
    })}
  `
}

const deliveryKey = (row: Delivery) => `${row.id} ${row.attempted_at} ${row.attempt}`

const columns = (id: string): Column<Delivery>[] => [
  {
    label: 'Type',
    cell: row =>
      html`<button type="button" class="link" onClick=${() => showDelivery(id, row)}>${h(Breakable, { text: row.type })}</button>`,
    kind: 'long',
  },
  {
    label: 'Outcome',
    cell: row => [h(Badge, { text: row.outcome, tone: TONES[row.outcome] }), ' ', responseText(row)],
  },
  { label: 'Time', cell: ({ attempted_at }) => h(Time, { at: attempted_at }) },
  { label: 'Attempt', cell: ({ attempt }) => number(attempt), kind: 'number' },
  {
    label: 'Duration',
    cell: ({ duration_ms }) => `${number(duration_ms)} ms`,
    kind: 'number',
  },
  {
    label: 'Next attempt',
    cell: ({ next_attempt_at: at }) => (at === null ? NONE : h(Time, { at })),
  },
]

function responseText({ status, error }: Delivery): string {
  return status === null ? (error ?? 'no response') : String(status)
}

function showDelivery(destination: string, row: Delivery): void {
  const { id, status, error, response } = row
  const eventId = /^event\./.test(row.type) ? id.replace(/^msg_/, '') : null
  showDialog(`Delivery of ${row.type}`, [
    h(Facts, {
      facts: [
        ['Outcome', h(Badge, { text: row.outcome, tone: TONES[row.outcome] })],
        ['Response', status === null ? 'no response' : String(status)],
        error && ['Error', error],
        ['Message', html`<code>${id}</code>`],
        eventId && ['Event', html`<a href=${link('event', { id: eventId })}><code>${eventId}</code></a>`],
        ['Attempt', `${number(row.attempt)}, duration ${number(row.duration_ms)} ms`],
        ['Time', h(Time, { at: row.attempted_at })],
        row.next_attempt_at && ['Next attempt', h(Time, { at: row.next_attempt_at })],
      ],
    }),
    response
      ? h(TextView, { text: response, label: 'Start of the response' })
      : html`<p class="faint">The response had no body.</p>`,
    h(SentBody, { destination, message: id }),
  ])
}

/** What was sent, as the receiver got it. */
function SentBody({ destination, message }: { destination: string; message: string }): VNode {
  const sent = useSignal<SentMessage | null>(null)
  const problem = useSignal<unknown>(null)
  const read = async () => {
    sent.value = await destinations.message(destination, message)
  }
  if (sent.value === null)
    return html`<div>${h(ActionButton, { label: 'Show what was sent', run: read, problem })}${h(ProblemArea, { problem })}</div>`
  const { body } = sent.value
  return body === null
    ? html`<p class="faint">The message has expired, or was deleted when a person was erased.</p>`
    : h(TextView, { text: formatJson(body), label: 'What was sent' })
}
