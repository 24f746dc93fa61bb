import type { VNode } from 'preact'
import { toNumber } from '../../amount.ts'
import type { AccountReport, TimelineEntry } from '../../api/types.ts'
import { Section } from '../../components/page.ts'
import { Plot } from '../../components/plot.ts'
import { DAY_MS } from '../../day.ts'
import { compact, money, type TimeUnit } from '../../format.ts'
import { h } from '../../html.ts'

/** The account's MRR after each of the movements that the timeline shows, up to the day of the report. */
export function AccountHistory({ report }: { report: AccountReport }): VNode | null {
  const { currency, as_of, summary, timeline } = report
  const movements = timeline.results.filter(hasMoved).toReversed()
  if (movements.length === 0 || timeline.page > 1) return null
  const name = summary.customer_name ?? summary.customer
  const moments = [...movements.map(({ occurred_at }) => occurred_at), as_of].map(at => new Date(at))
  return h(
    Section,
    { title: 'MRR over time' },
    h(Plot, {
      title: `MRR of ${name} in ${currency}`,
      moments,
      series: [
        {
          label: 'MRR',
          values: [...movements.map(({ mrr_after }) => mrr_after), summary.mrr].map(toNumber),
          isStepped: true,
        },
      ],
      shown: value => money(value, currency),
      axisShown: compact,
      unit: unitFor(moments),
    }),
  )
}

const SHORT_MS = 3 * DAY_MS

/** What tells the moments apart: hours for a few days, else days. */
function unitFor(moments: Date[]): TimeUnit {
  return moments.at(-1)!.getTime() - moments[0]!.getTime() < SHORT_MS ? 'hour' : 'day'
}

type Movement = TimelineEntry & { mrr_after: NonNullable<TimelineEntry['mrr_after']> }

function hasMoved(entry: TimelineEntry): entry is Movement {
  return entry.category === 'movement' && entry.mrr_after !== null
}
