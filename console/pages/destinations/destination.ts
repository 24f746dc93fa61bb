import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { destinations } from '../../api/admin.ts'
import type {
  Delivery,
  Destination,
  DestinationActivity,
  DestinationSettings,
  List,
} from '../../api/types.ts'
import { Credentials } from '../../components/credentials.ts'
import { useFollowed, withNewest } from '../../components/followed.ts'
import { ProblemArea } from '../../components/notice.ts'
import { Facts, Page, Section } from '../../components/page.ts'
import { activitySign, Signs } from '../../components/signs.ts'
import { Ago } from '../../components/time.ts'
import { plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import type { Route } from '../../router.ts'
import { DeliveryTable, deliveryKey, ROWS } from './deliveries.ts'
import { type ActionResult, DestinationActions, ReplayForm, ResultArea } from './destination-actions.ts'
import { DestinationForm } from './destination-form.ts'
import { DestinationState, whatOf } from './destination-state.ts'

type Shown = { destination: Destination; deliveries: List<Delivery>; activity: DestinationActivity }

async function read({ params, query }: Route<'destination'>, signal: AbortSignal): Promise<Shown> {
  const [destination, deliveries, activity] = await Promise.all([
    destinations.find(params.id, signal),
    destinations.deliveries(params.id, { outcome: query.get('outcome'), limit: ROWS }, signal),
    destinations.activity(params.id, signal),
  ])
  return { destination, deliveries, activity }
}

export const page = definePage(
  'destination',
  ({ route, signal }) => read(route, signal),
  ({ data, route, refresh }) => {
    const { destination, deliveries, activity } = useFollowed(data, {
      next: async (before, signal) => {
        const now = await read(route, signal)
        return { ...now, deliveries: withNewest(before.deliveries, now.deliveries, deliveryKey) }
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
      h(Signs, {
        signs: [
          activitySign('Delivered in 24 hours', activity.delivered),
          activitySign('Failed attempts in 24 hours', activity.failed),
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
      ['State', [h(DestinationState, { destination }), reason && ` ${reason}`]],
      health.failing_since && [
        'Failing since',
        html`${h(Ago, { at: health.failing_since })}${health.last_error && `: ${health.last_error}`}`,
      ],
      ['Pending', plural(health.pending, 'message')],
      ['Last delivery', health.last_success_at ? h(Ago, { at: health.last_success_at }) : 'never'],
      ['Address', destination.url],
      ['Data', whatOf(destination)],
      ['Secrets', h(Credentials, { credentials: destination.secrets })],
      names.length > 0 && ['Headers', names.join(', ')],
      ['Id', html`<code>${destination.id}</code>`],
    ],
  })
}
