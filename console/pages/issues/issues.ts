import { type Signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { deadLetters, tenants } from '../../api/admin.ts'
import type { Issue } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { confirmed } from '../../components/dialog.ts'
import { ActionButton, RefreshButton } from '../../components/form.ts'
import { Badge, EmptyState, ProblemArea } from '../../components/notice.ts'
import { Page } from '../../components/page.ts'
import { type Column, Table } from '../../components/table.ts'
import { Ago } from '../../components/time.ts'
import { lowerWords, number, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { tenant } from '../../session.ts'

export const page = definePage(
  'issues',
  ({ signal }) => tenants.issues(tenant.peek() ?? '', signal),
  ({ data, refresh }) => {
    const problem = useSignal<unknown>(null)
    const progress = useSignal('')
    const replay = async (issue: Issue) => {
      const what =
        'Each one is processed again, with the settings of today. What fails again comes back here.'
      const title = `Replay ${plural(issue.count, 'dead letter')}?`
      if (!(await confirmed({ title, text: what, yes: 'Replay' }))) return
      await replayGroup(issue, progress)
      await refresh()
    }
    return h(
      Page,
      {
        title: 'Issues',
        actions: h(RefreshButton, { refresh }),
        lead: 'What could not be processed and what was refused, by cause. Fix the cause, then replay: nothing is lost.',
      },
      h(ProblemArea, { problem }),
      progress.value !== '' && html`<p class="notice">${progress.value}</p>`,
      data.results.length === 0
        ? h(EmptyState, { title: 'No issues.', text: 'Nothing failed, and nobody was refused.' })
        : h(Table<Issue>, {
            caption: 'Issues',
            columns: columnsWith(replay, problem),
            rows: data.results,
            keyOf: ({ kind, cause, reason, source_config_id }) =>
              `${kind} ${cause} ${reason} ${source_config_id}`,
          }),
    )
  },
)

/** A request takes some thousands: as many requests as it needs. */
async function replayGroup(issue: Issue, progress: Signal<string>): Promise<void> {
  let done = 0
  for (let remaining = 1; remaining > 0; ) {
    const order = { cause: issue.cause, ...(issue.reason && { reason: issue.reason }) }
    const answer = await deadLetters.replay({
      ...{ tenant: tenant.peek(), ...order },
      ...(issue.source_config_id && { source: issue.source_config_id }),
    })
    done += answer.replayed
    remaining = answer.replayed === 0 ? 0 : answer.remaining
    progress.value = `${plural(done, 'dead letter')} replayed, ${number(remaining)} left`
  }
  announce(progress.value)
}

function columnsWith(replay: (issue: Issue) => unknown, problem: Signal<unknown>): Column<Issue>[] {
  return [
    { label: 'Cause', cell: issue => h(Cause, { issue }), kind: 'long' },
    {
      label: 'Kind',
      cell: ({ kind, reason }) => h(Badge, { text: reason ?? lowerWords(kind), tone: 'bad' }),
    },
    { label: 'Count', cell: ({ count }) => number(count), kind: 'number' },
    { label: 'First', cell: ({ first_at }) => h(Ago, { at: first_at }), isMinor: true },
    { label: 'Last', cell: ({ last_at }) => h(Ago, { at: last_at }), isMinor: true },
    {
      label: 'To do',
      cell: issue =>
        issue.kind === 'dead_letters'
          ? h(ActionButton, { label: 'Replay all', run: () => replay(issue), problem, kind: 'link' })
          : html`<a href=${link('source', { id: issue.source_config_id ?? '' })}>See the source</a>`,
    },
  ]
}

/** The cause in words, and the newest example of it. */
function Cause({
  issue: { kind, cause, reason, example, example_id, source_config_id: source },
}: {
  issue: Issue
}): VNode {
  const title =
    kind === 'dead_letters'
      ? html`<a href=${link('deadLetters', { cause, reason })}>${cause}</a>`
      : html`<span>${lowerWords(cause)}</span>`
  const newest = example_id
    ? html`<a href=${link('deadLetter', { id: example_id })}>the newest one</a>`
    : example
  return html`
    ${title}
    <span class="reason faint">
      ${newest}${source && kind === 'dead_letters' && html`, from <a href=${link('source', { id: source })}>${source}</a>`}
    </span>
  `
}
