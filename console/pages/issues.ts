import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { deadLetters, inbound, sources, tenants } from '../api/admin.ts'
import type { Issue, Rejection, ReplayOrder } from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { askConfirmation, showDialog } from '../components/dialog.ts'
import { ActionButton, RefreshButton } from '../components/form.ts'
import { useLiveData } from '../components/live-data.ts'
import { Badge, EmptyState, type Outcome, OutcomeArea, ProblemArea, ProblemNotice } from '../components/notice.ts'
import { Page, TextView } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Ago, Time } from '../components/time.ts'
import { formatJson, lowerWords, number, plural, text } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
import { letterType, replayOutcome } from './dead-letters.ts'
export const issuesPage = definePage(
  'issues',
  async ({ signal }) => {
    const [issues, all] = await Promise.all([
      tenants.issues(tenant.peek() ?? '', signal),
      sources.list(tenant.peek(), signal),
    ])
    return { issues, sourceNames: new Map(all.results.map(({ id, name }) => [id, name])) }
  },
  ({ data: { issues, sourceNames }, refresh }) => {
    const data = useLiveData(issues, {
      next: (_before, signal) => tenants.issues(tenant.peek() ?? '', signal),
    })
    const problem = useSignal<unknown>(null)
    const outcome = useSignal<Outcome | null>(null)
    const show = (sofar: Outcome, remaining: number) => {
      outcome.value = sofar
      if (remaining === 0) toast(sofar.text)
    }
    const replay = async (issue: Issue) => {
      const what = 'Each dead letter is processed again with the current settings. Those that fail again reappear here.'
      const title = `Replay ${plural(issue.count, 'dead letter')}?`
      if (!(await askConfirmation({ title, text: what, yes: 'Replay' }))) return
      const sum = { replayed: 0, applied: 0, failed_again: 0, waiting: 0 }
      await repeatUntilDone(
        async () => {
          const result = await deadLetters.replay(replayFilter(issue))
          for (const name of ['replayed', 'applied', 'failed_again', 'waiting'] as const) sum[name] += result[name]
          return { done: result.replayed, remaining: result.remaining }
        },
        ({ remaining }) => show(replayOutcome({ ...sum, remaining }), remaining),
      )
      await refresh()
    }
    const resolve = async (issue: Issue) => {
      const what =
        'They are closed without being processed. The page “Dead letters” lists them under “Show replayed and resolved dead letters” until they expire.'
      const title = `Resolve ${plural(issue.count, 'dead letter')} without replaying?`
      if (!(await askConfirmation({ title, text: what, yes: 'Mark as resolved' }))) return
      await repeatUntilDone(
        async () => {
          const { resolved, remaining } = await deadLetters.resolve(replayFilter(issue))
          return { done: resolved, remaining }
        },
        ({ done, remaining }) =>
          show(
            { text: `${plural(done, 'dead letter')} resolved, ${number(remaining)} remaining`, isBad: false },
            remaining,
          ),
      )
      await refresh()
    }
    return h(
      Page,
      {
        title: 'Issues',
        actions: h(RefreshButton, { refresh }),
        lead: 'Problems, grouped by cause. Dead letters are data that is invalid or could not be processed: fix the cause, then replay them. Rejected requests cannot be replayed: their senders must send them again. They are listed for 14 days. Pending deliveries wait for a destination that is failing. Billing warnings are values that Kontor could not read.',
      },
      h(ProblemArea, { problem }),
      h(OutcomeArea, { outcome }),
      data.results.length === 0
        ? h(EmptyState, {
            title: 'No issues.',
            text: 'No dead letters, rejected requests, pending deliveries or billing warnings.',
          })
        : h(Table<Issue>, {
            caption: 'Issues',
            columns: issueColumns({ replay, resolve, problem, sourceNames }),
            rows: data.results,
            csv: { api: 'admin', path: `/tenants/${tenant.peek()}/issues`, query: {}, name: 'issues' },
            rowKey: ({ kind, cause, reason, route, source_config_id, destination_id }) =>
              `${kind} ${cause} ${reason} ${route} ${source_config_id} ${destination_id}`,
          }),
    )
  },
)

/** Selects the dead letters of an issue. */
function replayFilter({ cause, reason, source_config_id: source }: Issue): ReplayOrder {
  return { tenant: tenant.peek(), cause, ...(reason && { reason }), ...(source && { source }) }
}

type Portion = { done: number; remaining: number }

/** One request handles some thousands of dead letters, so it is repeated until none remain. */
async function repeatUntilDone(work: () => Promise<Portion>, report: (sum: Portion) => void): Promise<void> {
  let sum = 0
  for (let remaining = 1; remaining > 0; ) {
    const portion = await work()
    sum += portion.done
    remaining = portion.done === 0 ? 0 : portion.remaining
    report({ done: sum, remaining })
  }
}

const KINDS: Record<Issue['kind'], string> = {
  dead_letters: 'dead letters',
  refused: 'rejected requests',
  failing_destination: 'pending deliveries',
  billing_warning: 'billing warnings',
}

type GroupActions = {
  replay(issue: Issue): unknown
  resolve(issue: Issue): unknown
  problem: Signal<unknown>
  sourceNames: Map<string, string>
}

function issueColumns(actions: GroupActions): Column<Issue>[] {
  return [
    { label: 'Cause', cell: issue => h(Cause, { issue, names: actions.sourceNames }), kind: 'long' },
    {
      label: 'Kind',
      cell: ({ kind, reason }) =>
        h(Badge, { text: reason === null ? KINDS[kind] : `${KINDS[kind]}, ${letterType(reason)}`, tone: 'bad' }),
    },
    { label: 'Count', cell: ({ count }) => number(count), kind: 'number' },
    { label: 'First seen', cell: ({ first_at }) => h(Ago, { at: first_at }) },
    { label: 'Last seen', cell: ({ last_at }) => h(Ago, { at: last_at }) },
    { label: 'Action', cell: issue => issueActions(issue, actions) },
  ]
}

function issueActions(issue: Issue, { replay, resolve, problem }: GroupActions): ComponentChildren {
  if (issue.destination_id !== null)
    return html`<a href=${link('destination', { id: issue.destination_id })}>View destination</a>`
  if (issue.kind === 'billing_warning')
    return html`<span class="reason faint">Resolved when the source sends a newer version of the object</span>`
  if (issue.kind === 'refused') return rejectionLink(issue)
  return html`<span class="choices">
    ${h(ActionButton, { label: 'Replay all', needs: 'operator', run: () => replay(issue), problem, kind: 'link' })}
    ${h(ActionButton, { label: 'Mark as resolved', needs: 'admin', run: () => resolve(issue), problem, kind: 'link' })}
  </span>`
}

function rejectionLink(issue: Issue): VNode {
  return issue.route === null
    ? html`<a href=${link('source', { id: issue.source_config_id ?? '' })}>View source</a>`
    : html`<button type="button" class="link" onClick=${() => showExamples(issue)}>View examples</button>`
}

/** The error; below it, where it occurred and its latest example. */
function Cause({ issue, names }: { issue: Issue; names: Map<string, string> }): VNode {
  const { kind, cause, route, example, example_id, source_config_id: source } = issue
  const from = source && html`<a href=${link('source', { id: source })}>${names.get(source) ?? source}</a>`
  const where = kind === 'failing_destination' ? cause : (route ?? from)
  const newest = example_id
    ? html`<a href=${link(kind === 'billing_warning' ? 'event' : 'deadLetter', { id: example_id })}>View latest example</a>`
    : kind === 'refused' && route === null && example
  return html`
    ${causeTitle(issue)}
    <span class="reason faint">${where}${where && newest && ': '}${newest}</span>
  `
}

/** Causes of rejected webhooks are codes. Those of other requests are messages without numbers; the latest one has them. */
function causeTitle({ kind, cause, reason, route, example }: Issue): VNode {
  if (kind === 'dead_letters') return html`<a href=${link('deadLetters', { cause, reason })}>${cause}</a>`
  if (kind === 'failing_destination') return html`<span>${example}</span>`
  if (kind === 'refused') return html`<span>${route === null ? lowerWords(cause) : (example ?? cause)}</span>`
  return html`<span>${cause}</span>`
}

const MAX_EXAMPLES = 5

/** Shows the latest requests with a key that were rejected for this cause. */
async function showExamples({ route, cause }: Issue): Promise<void> {
  const title = `Rejected: ${route}`
  try {
    const query = { tenant: tenant.peek(), route, cause, limit: MAX_EXAMPLES }
    const { results } = await inbound.rejections(query)
    showDialog(title, results.length > 0 ? results.map(example => h(Example, { example })) : NO_EXAMPLES)
  } catch (error) {
    showDialog(title, h(ProblemNotice, { error }))
  }
}

const NO_EXAMPLES = html`<p class="faint">
  No examples are available. They are deleted after 14 days, and whenever a person is erased.
</p>`

function Example({ example }: { example: Rejection }): VNode {
  const { status, code, detail, body, key_id: key, rejected_at: at } = example
  const from = [key, example.ip, example.user_agent].filter(Boolean).join(', ')
  return html`
    <p>${h(Badge, { text: `${status} ${code}`, tone: 'bad' })} ${detail}</p>
    <p class="faint">${h(Time, { at })}, from ${text(from)}</p>
    ${body && h(TextView, { text: formatJson(body), label: 'Start of the body' })}
  `
}
