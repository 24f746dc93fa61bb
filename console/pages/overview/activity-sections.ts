import type { VNode } from 'preact'
import { type Amount, toNumber } from '../../amount.ts'
import type { Conversion, Event, List, SeriesRow } from '../../api/types.ts'
import { Section, type Tile, Tiles } from '../../components/page.ts'
import { Plot } from '../../components/plot.ts'
import { Table } from '../../components/table.ts'
import { compact, money, number } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { conversionColumns } from '../conversions/conversion-table.ts'
import { eventColumns, NoEvents } from '../events/event-table.ts'
import type { Activity } from './activity.ts'
import { currenciesIn, type Days, daysOf } from './days.ts'

const MOST_CURRENCIES = 4
const PLOT_HEIGHT = 160

/** One number of the day, and how it compares. */
type Figure = { label: string; days: Days; shown(value: Amount): string; href: string }

/** Today against yesterday and last week: the numbers, and how they came about. */
export function Today({ activity }: { activity: Activity }): VNode | null {
  const figures = figuresOf(activity)
  if (figures.length === 0) return null
  return h(
    Section,
    { title: 'Today' },
    h(Tiles, { tiles: figures.map(tileOf) }),
    html`<div class="plots">${figures.map(figure => h(FigurePlot, { key: figure.label, figure }))}</div>`,
  )
}

function figuresOf({ eventHours, conversionHours, readAt }: Activity): Figure[] {
  const counts = (label: string, rows: SeriesRow[] | null, href: string): Figure[] =>
    rows ? [{ label, days: daysOf(rows, readAt, ({ count }) => count), shown: number, href }] : []
  const currencies = currenciesIn(conversionHours ?? []).slice(0, MOST_CURRENCIES)
  return [
    ...counts('Events', eventHours, link('events')),
    ...counts('Conversions', conversionHours, link('conversions')),
    ...currencies.map(currency => ({
      label: currencies.length > 1 ? `Revenue in ${currency}` : 'Revenue',
      days: daysOf(conversionHours!, readAt, ({ amounts }) => amounts?.[currency] ?? null),
      shown: (value: Amount) => money(value, currency),
      href: link('conversions'),
    })),
  ]
}

function tileOf({ label, days, shown, href }: Figure): Tile {
  const note = `${shown(days.yesterday)} yesterday, ${shown(days.weekAgo)} a week ago`
  return { label, value: shown(days.today), note, href }
}

function FigurePlot({ figure: { label, days, shown } }: { figure: Figure }): VNode {
  const isEmpty = [days.today, days.yesterday, days.weekAgo].every(total => toNumber(total) === 0)
  return html`
    <div>
      <h3>${label} so far today</h3>
      ${
        isEmpty
          ? html`<p class="faint">No data for today, yesterday or a week ago.</p>`
          : h(Plot, {
              title: `${label}, cumulative by hour: today, yesterday and a week ago`,
              ...{ moments: days.moments, series: days.series, height: PLOT_HEIGHT, unit: 'hour' },
              ...{ shown, axisShown: compact },
            })
      }
    </div>
  `
}

export function Newest({ activity: { events, conversions } }: { activity: Activity }): VNode {
  return html`
    ${events && h(Section, { title: 'Newest events' }, h(NewestEvents, { events }))}
    ${
      conversions !== null &&
      conversions.results.length > 0 &&
      h(Section, { title: 'Newest conversions' }, h(NewestConversions, { conversions }))
    }
  `
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
