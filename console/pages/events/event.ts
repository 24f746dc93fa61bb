import { Page } from '../../components/page.ts'
import { h } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { findOutcome } from './find-outcome.ts'
import { Outcome, UnknownEvent } from './outcome.ts'
import { readWay } from './way.ts'

export const page = definePage(
  'event',
  async ({ route, signal }) => {
    const outcome = await findOutcome(route.params.id, '', signal)
    return { outcome, way: await readWay(outcome, signal) }
  },
  ({ data: { outcome, way }, route }) =>
    h(
      Page,
      { title: outcome?.event?.event_type ?? 'Event lookup' },
      outcome ? h(Outcome, { outcome, way }) : h(UnknownEvent, { id: route.params.id }),
    ),
)
