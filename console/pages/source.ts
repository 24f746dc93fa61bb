import { type ReadonlySignal, type Signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { inbound, sources } from '../api/admin.ts'
import type {
  Backlog,
  JsonObject,
  List,
  Receipt,
  Rejection,
  Role,
  SecretKind,
  Source,
  SourceActivity,
  SourceTest,
} from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { askConfirmation, showDialog } from '../components/dialog.ts'
import { ActionButton, Form, SelectFilter, TextArea } from '../components/form.ts'
import { prependNewest, useLiveData } from '../components/live-data.ts'
import { Badge, EmptyState, ProblemArea, ProblemNotice, type Tone } from '../components/notice.ts'
import { activityTile, Facts, JsonView, Page, Section, Tiles } from '../components/page.ts'
import { type Column, GrowingTable } from '../components/table.ts'
import { Breakable, Copyable, Credentials } from '../components/text.ts'
import { Time } from '../components/time.ts'
import { lowerWords, number, plural, text } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link, type Route } from '../router.ts'
import { webhookCommand } from '../samples.ts'
import { SourceState, sourceType } from './sources.ts'

type Shown = {
  source: Source
  receipts: List<Receipt>
  rejections: List<Rejection>
  backlog: Backlog | undefined
  activity: SourceActivity
}

async function read({ params, query }: Route<'source'>, signal: AbortSignal): Promise<Shown> {
  const source = await sources.find(params.id, signal)
  const [receipts, rejections, backlogs, activity] = await Promise.all([
    inbound.receipts({ source: source.id, outcome: query.get('outcome'), limit: ROWS }, signal),
    inbound.rejections({ source: source.id, limit: ROWS }, signal),
    inbound.backlogs(signal),
    sources.activity(source.id, signal),
  ])
  const backlog = backlogs.results.find(({ source_config_id }) => source_config_id === source.id)
  return { source, receipts, rejections, backlog, activity }
}

/** The current state, with new rows on top of the shown ones. */
async function readNext(before: Shown, route: Route<'source'>, signal: AbortSignal): Promise<Shown> {
  const now = await read(route, signal)
  return {
    ...now,
    receipts: prependNewest(before.receipts, now.receipts, receiptKey),
    rejections: prependNewest(before.rejections, now.rejections, rejectionKey),
  }
}

export const sourcePage = definePage(
  'source',
  ({ route, signal }) => read(route, signal),
  ({ data, route, refresh }) => {
    const next = (before: Shown, signal: AbortSignal) => readNext(before, route, signal)
    const { source, receipts, rejections, backlog, activity } = useLiveData(data, { next })
    const problem = useSignal<unknown>(null)
    const result = useSignal<ActionResult | null>(null)
    return h(
      Page,
      { title: source.name, actions: h(SourceActions, { source, problem, result, refresh }) },
      h(ProblemArea, { problem }),
      h(ResultArea, { result }),
      h(Tiles, {
        isSmall: true,
        tiles: [
          activityTile('Received (24 h)', activity.received),
          activityTile('Rejected (24 h)', activity.refused, true),
        ],
      }),
      h(SourceFacts, { source, backlog }),
      h(
        Section,
        { title: 'Received events' },
        h(ReceiptTable, { source, first: receipts, outcome: route.query.get('outcome') }),
      ),
      h(Section, { title: 'Rejected requests' }, h(RejectionTable, { source, first: rejections })),
      h(Section, { title: 'Settings' }, h(SettingsForm, { source, refresh })),
    )
  },
)

function SourceFacts({ source, backlog }: { source: Source; backlog: Backlog | undefined }): VNode {
  const { rate_limit: limit, signing_secrets: secrets, overflow } = source
  return h(Facts, {
    facts: [
      [
        'Status',
        [h(SourceState, { source }), backlog && ` ${plural(backlog.events, 'event')} deferred by the rate limit`],
      ],
      ['Type', sourceType(source)],
      ['URL', h(Copyable, { text: location.origin + source.path, label: 'Copy the URL' })],
      ['Tokens', h(Credentials, { credentials: source.tokens })],
      [
        'Signing secrets',
        secrets.length > 0 ? h(Credentials, { credentials: secrets }) : 'None. Signatures are not checked.',
      ],
      [
        'Rate limit',
        `${number(limit.events)} events per ${number(limit.per_seconds)} s. Events above the limit are ${overflow === 'defer' ? 'deferred' : 'dropped'}.`,
      ],
    ],
  })
}

const OVERLAP_HOURS = 24

/** The result of an action. It stays while the page is refreshed. */
type ActionResult =
  | { kind: 'secret'; label: string; secret: string; isFirst: boolean }
  | { kind: 'test'; test: SourceTest }

type SourceActionsProps = {
  source: Source
  problem: Signal<unknown>
  result: Signal<ActionResult | null>
  refresh(): Promise<void>
}

function SourceActions({ source, problem, result, refresh }: SourceActionsProps): VNode {
  const { id, enabled, signing_secrets } = source
  const rotate = async (what: SecretKind, label: string) => {
    const isFirst = what === 'signing_secret' && signing_secrets.length === 0
    const title = isFirst ? `Add a ${label}?` : `Rotate the ${label}?`
    const text = `The new ${label} is shown only once. ${describeEffect(label, isFirst)}`
    if (!(await askConfirmation({ title, text, yes: isFirst ? 'Add' : 'Rotate' }))) return
    const rotated = await sources.rotate(id, what, OVERLAP_HOURS)
    result.value = { kind: 'secret', label, secret: rotated[what] ?? '', isFirst }
    toast(`The new ${label} is shown`)
    await refresh()
  }
  const test = async () => {
    const outcome = await sources.test(id)
    result.value = { kind: 'test', test: outcome }
    toast(testSummary(outcome))
    await refresh()
  }
  const toggle = async () => {
    await sources.setEnabled(id, !enabled)
    await refresh()
  }
  const button = (label: string, needs: Role, run: () => unknown) => h(ActionButton, { label, needs, run, problem })
  const secretLabel = signing_secrets.length > 0 ? 'Rotate signing secret' : 'Add signing secret'
  return html`
    ${button('Send test event', 'operator', test)}
    ${button('Rotate token', 'admin', () => rotate('token', 'token'))}
    ${button(secretLabel, 'admin', () => rotate('signing_secret', 'signing secret'))}
    ${button(enabled ? 'Disable' : 'Enable', 'operator', toggle)}
    ${button('Delete', 'admin', () => remove(source))}
  `
}

async function remove({ id, name }: Source): Promise<void> {
  const text = 'Data received from it is kept. Its URL will return 404.'
  if (!(await askConfirmation({ title: `Delete ${name}?`, text, yes: 'Delete' }))) return
  await sources.remove(id)
  go(link('sources'))
}

function ResultArea({ result }: { result: ReadonlySignal<ActionResult | null> }): VNode | null {
  const shown = result.value
  if (shown?.kind === 'secret') return h(NewSecret, shown)
  return shown && h(TestResult, shown)
}

/** Without a signing secret, signatures are not checked. */
function describeEffect(label: string, isFirst: boolean): string {
  return isFirst
    ? 'With a signing secret, the source rejects requests without a valid signature.'
    : `The previous ${label} remains valid for ${OVERLAP_HOURS} hours.`
}

type NewSecretProps = { label: string; secret: string; isFirst: boolean }

function NewSecret({ label, secret, isFirst }: NewSecretProps): VNode {
  return html`
    <div class="once">
      <p>The new ${label} is shown only once. Save it now. ${describeEffect(label, isFirst)}</p>
      ${h(Copyable, { text: secret, label: `Copy the ${label}` })}
    </div>
  `
}

function testSummary({ ok }: SourceTest): string {
  return `The test event was ${ok ? '' : 'not '}processed.`
}

function TestResult({ test }: { test: SourceTest }): VNode {
  return html`
    <div class="once">
      <p><strong>${testSummary(test)}</strong></p>
      <ol class="steps">
        ${test.steps.map(
          ({ step, ok: isGood, detail }) =>
            html`<li><p>${h(Badge, { text: step, tone: isGood ? 'good' : 'bad' })}<span>${detail}</span></p></li>`,
        )}
      </ol>
      ${test.archived.map(value => h(JsonView, { value, label: 'Archived result' }))}
    </div>
  `
}

/** Read-only fields; all others are settings. */
const FACTS = ['id', 'tenant', 'type', 'path', 'enabled', 'tokens', 'signing_secrets', 'created_at', 'updated_at']

function SettingsForm({ source, refresh }: { source: Source; refresh(): Promise<void> }): VNode {
  const settings = Object.fromEntries(Object.entries(source).filter(([name]) => !FACTS.includes(name)))
  const save = async (values: { settings: string }) => {
    await sources.change(source.id, parseSettings(values.settings))
    await refresh()
  }
  return html`
    <details>
      <summary>Edit settings</summary>
      ${h(
        Form<'settings'>,
        { key: source.updated_at, submit: 'Save', needs: 'admin', layout: 'stacked', run: save },
        h(TextArea, {
          id: 'settings',
          label: 'Settings as JSON',
          rows: 16,
          value: JSON.stringify(settings, null, 2),
          hint: 'See “Admin: sources” in the API reference for the meaning of each setting.',
        }),
      )}
    </details>
  `
}

function parseSettings(text: string): JsonObject {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The settings are not valid JSON: ${(error as Error).message}.`)
  }
}

const ROWS = 20

const OUTCOMES = [
  ['', 'All outcomes'],
  ['processed', 'Processed'],
  ['duplicate', 'Duplicate'],
  ['dropped', 'Dropped'],
  ['dead_letter', 'Dead letter'],
  ['suppressed', 'Suppressed'],
] as const

type ReceiptTableProps = { source: Source; first: List<Receipt>; outcome: string | null }

/** The outcome of every event of a source. */
function ReceiptTable({ source, first, outcome }: ReceiptTableProps): VNode {
  const { id, path } = source
  return html`
    ${h(SelectFilter, {
      id: 'outcome',
      label: 'Outcome',
      options: OUTCOMES,
      value: outcome ?? '',
      onChange: chosen => go(link('source', { id }, { outcome: chosen })),
    })}
    ${h(GrowingTable<Receipt>, {
      caption: 'Received events',
      columns: receiptColumns,
      rowKey: receiptKey,
      first,
      csv: { api: 'admin', path: '/receipts', query: { source: id, outcome }, name: 'receipts' },
      load: cursor => inbound.receipts({ source: id, outcome, limit: ROWS, cursor }),
      empty: outcome
        ? h(EmptyState, { title: 'No received events have this outcome.' })
        : h(EmptyState, {
            title: 'No events received yet.',
            text: 'Use “Send test event” above, or send one with this command:',
            command: webhookCommand(path),
          }),
    })}
  `
}

const receiptKey = ({ id, received_at }: Receipt) => `${id} ${received_at}`
const rejectionKey = ({ id }: Rejection) => id

const receiptColumns: Column<Receipt>[] = [
  {
    label: 'Type',
    cell: ({ id, event_type }) =>
      html`<a href=${link('event', { id })}>${h(Breakable, { text: event_type ?? id })}</a>`,
    kind: 'long',
  },
  {
    label: 'Outcome',
    cell: ({ outcome, detail }) => [
      h(Badge, { text: lowerWords(outcome), tone: outcomeTone(outcome) }),
      detail && ` ${detail}`,
    ],
  },
  { label: 'Received', cell: ({ received_at }) => h(Time, { at: received_at }) },
  {
    label: "Sender's id",
    cell: ({ inbound_event_id }) => text(inbound_event_id),
    kind: 'long',
  },
  {
    label: 'Result',
    cell: ({ id, archived }) =>
      archived && html`<button type="button" class="link" onClick=${() => showArchived(id)}>Show</button>`,
  },
]

async function showArchived(id: string): Promise<void> {
  const title = 'Archived result'
  try {
    showDialog(title, h(JsonView, { value: await inbound.archived(id), label: title }))
  } catch (error) {
    showDialog(title, h(ProblemNotice, { error }))
  }
}

/** Rejected requests: why a sender's events do not arrive. */
function RejectionTable({ source, first }: { source: Source; first: List<Rejection> }): VNode {
  return h(GrowingTable<Rejection>, {
    caption: 'Rejected requests',
    columns: rejectionColumns,
    rowKey: rejectionKey,
    first,
    csv: { api: 'admin', path: '/rejections', query: { source: source.id }, name: 'rejected-requests' },
    load: cursor => inbound.rejections({ source: source.id, limit: ROWS, cursor }),
    empty: html`<p class="faint">No requests were rejected.</p>`,
  })
}

const rejectionColumns: Column<Rejection>[] = [
  { label: 'Time', cell: ({ rejected_at }) => h(Time, { at: rejected_at }) },
  {
    label: 'Reason',
    cell: ({ status, code, detail }) => [h(Badge, { text: `${status} ${code}`, tone: 'bad' }), ' ', detail],
  },
  {
    label: 'Client',
    cell: ({ ip, user_agent }) => text([ip, user_agent].filter(Boolean).join(', ')),
    kind: 'long',
  },
  { label: 'Bytes', cell: ({ bytes }) => number(bytes), kind: 'number' },
  {
    label: 'Similar requests, not listed',
    cell: ({ suppressed }) => (suppressed > 0 ? number(suppressed) : ''),
    kind: 'number',
  },
]

function outcomeTone(outcome: string): Tone {
  if (outcome === 'processed') return 'good'
  return outcome === 'dropped' || outcome === 'dead_letter' ? 'bad' : 'neutral'
}
