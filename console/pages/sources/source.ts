import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { inbound, sources } from '../../api/admin.ts'
import type { Backlog, List, Receipt, Rejection, Source, SourceActivity } from '../../api/types.ts'
import { Copyable } from '../../components/copyable.ts'
import { Credentials } from '../../components/credentials.ts'
import { useFollowed, withNewest } from '../../components/followed.ts'
import { ProblemArea } from '../../components/notice.ts'
import { Facts, Page, Section } from '../../components/page.ts'
import { activitySign, Signs } from '../../components/signs.ts'
import { number, plural } from '../../format.ts'
import { h } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import type { Route } from '../../router.ts'
import { ReceiptTable, RejectionTable, ROWS, receiptKey, rejectionKey } from './inbound-tables.ts'
import { type ActionResult, ResultArea, SourceActions } from './source-actions.ts'
import { SettingsForm } from './source-settings.ts'
import { SourceState, typeOf } from './source-state.ts'

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

/** As it is now, on top of the rows that are shown. */
async function readNext(before: Shown, route: Route<'source'>, signal: AbortSignal): Promise<Shown> {
  const now = await read(route, signal)
  return {
    ...now,
    receipts: withNewest(before.receipts, now.receipts, receiptKey),
    rejections: withNewest(before.rejections, now.rejections, rejectionKey),
  }
}

export const page = definePage(
  'source',
  ({ route, signal }) => read(route, signal),
  ({ data, route, refresh }) => {
    const next = (before: Shown, signal: AbortSignal) => readNext(before, route, signal)
    const { source, receipts, rejections, backlog, activity } = useFollowed(data, { next })
    const problem = useSignal<unknown>(null)
    const result = useSignal<ActionResult | null>(null)
    return h(
      Page,
      { title: source.name, actions: h(SourceActions, { source, problem, result, refresh }) },
      h(ProblemArea, { problem }),
      h(ResultArea, { result }),
      h(Signs, {
        signs: [
          activitySign('Received in 24 hours', activity.received),
          activitySign('Rejected in 24 hours', activity.refused),
        ],
      }),
      h(SourceFacts, { source, backlog }),
      h(
        Section,
        { title: 'Receipts' },
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
        'State',
        [
          h(SourceState, { source }),
          backlog && ` ${plural(backlog.events, 'event')} deferred by the rate limit`,
        ],
      ],
      ['Type', typeOf(source)],
      ['Address', h(Copyable, { text: location.origin + source.path, label: 'Copy the address' })],
      ['Tokens', h(Credentials, { credentials: source.tokens })],
      [
        'Signing secrets',
        secrets.length > 0 ? h(Credentials, { credentials: secrets }) : 'none: requests are not signed',
      ],
      [
        'Rate limit',
        `${number(limit.events)} events per ${number(limit.per_seconds)} s, then ${overflow === 'defer' ? 'deferred' : 'dropped'}`,
      ],
    ],
  })
}
