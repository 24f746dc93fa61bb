import type { VNode } from 'preact'
import type { Health, SeriesRow } from '../../api/types.ts'
import { Section } from '../../components/page.ts'
import { type Sign, Signs } from '../../components/signs.ts'
import { Ago } from '../../components/time.ts'
import { number, percent, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'

/** What lies further ahead is no forecast. */
const FAR_DAYS = 1_000

/** How the service is doing, each with the last 24 hours where there is something to draw. */
export function HealthSigns({ health, hours }: { health: Health; hours: SeriesRow[] | null }): VNode {
  const perHour = hours?.slice(-24).map(({ count }) => count) ?? []
  const { waiting, retrying, installation, deferred, dead_letters: letters, refused } = health
  const { disk_free: free, disk_days_left: days } = health
  const everybody = installation?.waiting ?? null
  const signs: (Sign | null)[] = [
    {
      label: 'Events in the last full hour',
      value: number(perHour.at(-2) ?? 0),
      spark: { label: 'Events per hour', values: perHour },
    },
    waiting && {
      label: 'Waiting for processing',
      value: number(waiting.entries),
      note: waiting.oldest_at && html`<span>oldest ${h(Ago, { at: waiting.oldest_at })}</span>`,
    },
    everybody && everybody.entries !== waiting?.entries
      ? {
          label: 'Waiting, all tenants',
          value: number(everybody.entries),
          note: everybody.oldest_at && html`<span>oldest ${h(Ago, { at: everybody.oldest_at })}</span>`,
        }
      : null,
    retrying.entries > 0
      ? {
          label: 'Being retried',
          value: number(retrying.entries),
          note: retrying.oldest_at && html`<span>oldest ${h(Ago, { at: retrying.oldest_at })}</span>`,
        }
      : null,
    {
      label: 'Dead letters',
      value: number(letters.open),
      href: link('deadLetters'),
      spark: { label: 'Dead letters per hour', values: letters.by_hour },
    },
    {
      label: 'Rejected in 24 hours',
      value: number(refused.last_24_hours),
      spark: { label: 'Rejected requests per hour', values: refused.by_hour },
    },
    {
      label: 'Deferred',
      value: number(deferred.events),
      note: deferred.oldest_at && html`<span>oldest ${h(Ago, { at: deferred.oldest_at })}</span>`,
    },
    free === null
      ? null
      : {
          label: 'Disk used, all tenants',
          value: percent(1 - free),
          note:
            days !== null &&
            days < FAR_DAYS &&
            `full in ${plural(Math.max(1, Math.floor(days)), 'day')} at the current rate`,
        },
  ]
  return h(Section, { title: 'Health' }, h(Signs, { signs }))
}
