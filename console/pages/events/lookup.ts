import { Page } from '../../components/page.ts'
import { h } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { findOutcome } from './find-outcome.ts'
import { LookupForm } from './lookup-form.ts'
import { Outcome, UnknownEvent } from './outcome.ts'
import { readWay } from './way.ts'

/** By whatever id one has: #/events/lookup?id=…&source=… */
const asked = (query: URLSearchParams) => ({ id: query.get('id') ?? '', source: query.get('source') ?? '' })

export const page = definePage(
  'eventLookup',
  async ({ route, signal }) => {
    const { id, source } = asked(route.query)
    const outcome = await findOutcome(id, source, signal)
    return { outcome, way: await readWay(outcome, signal) }
  },
  ({ data: { outcome, way }, route }) => {
    const { id, source } = asked(route.query)
    return h(
      Page,
      { title: outcome?.event?.event_type ?? 'Event lookup' },
      h(LookupForm, { id, source }),
      outcome ? h(Outcome, { outcome, way }) : id !== '' && h(UnknownEvent, { id }),
    )
  },
)
