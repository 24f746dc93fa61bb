import type { ComponentChildren, VNode } from 'preact'
import { type Amount, sumOf } from '../../amount.ts'
import type { Conversion, Event, List } from '../../api/types.ts'
import { Section, type Tile, Tiles } from '../../components/page.ts'
import { Table } from '../../components/table.ts'
import { Ago } from '../../components/time.ts'
import { money, number } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { conversionColumns } from '../conversions/conversion-table.ts'
import { eventColumns, NoEvents } from '../events/event-table.ts'
import type { Activity } from './activity.ts'
import { Status } from './status.ts'

export function ActivitySections({ activity }: { activity: Activity }): VNode {
  const { events, conversions } = activity
  return html`
    ${h(Section, { title: 'Last 24 hours' }, h(Tiles, { tiles: recentTiles(activity) }))}
    ${h(Status, { activity })}
    ${events && h(Section, { title: 'Newest events' }, h(NewestEvents, { events }))}
    ${
      conversions !== null &&
      conversions.results.length > 0 &&
      h(Section, { title: 'Newest conversions' }, h(NewestConversions, { conversions }))
    }
    ${h(Section, { title: 'Records' }, h(Tiles, { tiles: recordTiles(activity) }))}
  `
}

function recentTiles({ recentEvents, recentConversions, events }: Activity): (Tile | null)[] {
  return [
    recentEvents && {
      label: 'Events',
      value: countOf(recentEvents),
      note: lastOf(events),
      href: link('events'),
    },
    recentConversions && {
      label: 'Conversions',
      value: countOf(recentConversions),
      note: revenueOf(recentConversions),
      href: link('conversions'),
    },
  ]
}

function recordTiles(activity: Activity): (Tile | null)[] {
  const tile = (label: string, type: 'products' | 'contacts' | 'orders') => {
    const list = activity[type]
    return list && { label, value: countOf(list), href: link('records', { type }) }
  }
  return [tile('Products', 'products'), tile('Contacts', 'contacts'), tile('Orders', 'orders')]
}

function NewestEvents({ events: { results } }: { events: List<Event> }): VNode {
  if (results.length === 0) return h(NoEvents, {})
  return html`
    ${h(Table<Event>, {
      caption: 'Newest events',
      columns: eventColumns,
      rows: results,
      keyOf: ({ id }) => id,
    })}
    <p class="further"><a href=${link('events')}>All events</a></p>
  `
}

function NewestConversions({ conversions: { results } }: { conversions: List<Conversion> }): VNode {
  return html`
    ${h(Table<Conversion>, {
      caption: 'Newest conversions',
      columns: conversionColumns,
      rows: results,
      keyOf: ({ id }) => id,
    })}
    <p class="further"><a href=${link('conversions')}>All conversions</a></p>
  `
}

function countOf({ results, next_cursor }: List<unknown>): string {
  return `${number(results.length)}${next_cursor === null ? '' : '+'}`
}

function lastOf(events: List<Event> | null): ComponentChildren {
  const newest = events?.results[0]
  return newest ? html`<span>last ${h(Ago, { at: newest.occurred_at })}</span>` : 'none yet'
}

/** What the sales come to, in each currency. */
function revenueOf({ results, next_cursor }: List<Conversion>): string | null {
  const amounts = new Map<string, Amount[]>()
  for (const { amount, currency } of results)
    if (amount !== null && currency) amounts.set(currency, [...(amounts.get(currency) ?? []), amount])
  if (amounts.size === 0) return null
  const sums = [...amounts].map(([currency, list]) => money(sumOf(list), currency))
  return `${sums.join(', ')}${next_cursor === null ? '' : ' and more'}`
}
