import { Page } from '../../components/page.ts'
import { h } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { findOutcome } from './find-outcome.ts'
import { Outcome, UnknownEvent } from './outcome.ts'

export const page = definePage(
  'event',
  ({ route, signal }) => findOutcome(route.params.id, '', signal),
  ({ data: outcome, route }) =>
    h(
      Page,
      { title: outcome?.event?.event_type ?? 'What happened to an event' },
      outcome ? h(Outcome, { outcome }) : h(UnknownEvent, { id: route.params.id }),
    ),
)
