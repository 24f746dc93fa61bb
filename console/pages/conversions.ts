import type { ComponentChildren, VNode } from 'preact'
import { type Amount, toNumber } from '../amount.ts'
import { conversions, events } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { Conversion } from '../api/types.ts'
import { RefreshButton } from '../components/form.ts'
import { Badge, EmptyState } from '../components/notice.ts'
import { Facts, Page, Tiles } from '../components/page.ts'
import { Plot } from '../components/plot.ts'
import { type Column, GrowingTable } from '../components/table.ts'
import { Breakable } from '../components/text.ts'
import { Ago, Time } from '../components/time.ts'
import { countTypes, filterOf, NoMatches, TimeFilter, TypeButtons } from '../components/time-filter.ts'
import { compactMoney, date, money, number, receivedVia, sentence, text, words } from '../format.ts'
import { h, html } from '../html.ts'
import { hrefWithView } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { convertCommand, keyHint } from '../samples.ts'
import { isAdmin } from '../session.ts'
import { currency } from '../view.ts'
import {
  courseSeries,
  courseTile,
  courseZoom,
  type Frame,
  readConversionCourses,
  readFrame,
  readFrameSeries,
} from './figures.ts'

type Courses = Awaited<ReturnType<typeof readConversionCourses>>

export const conversionsPage = definePage(
  'conversions',
  async ({ route: { query }, signal }) => {
    const frame = readFrame()
    const [list, courses, grouped, any] = await Promise.all([
      conversions.list(filterOf(query), signal),
      readConversionCourses(frame, signal, query.get('event_type')),
      readFrameSeries(frame, query => conversions.series({ ...query, group_by: 'event_type' }, signal)),
      conversions.list({ limit: 1 }, signal),
    ])
    const types = countTypes(grouped.results)
    return { list, courses, types, frame, isEmpty: any.results.length === 0 }
  },
  ({ data: { list, courses, types, frame, isEmpty }, route: { query }, refresh }) =>
    h(
      Page,
      {
        title: 'Conversions',
        actions: h(RefreshButton, { refresh }),
        lead: 'A conversion is a sale or another goal. Each sale is listed once, even if several systems report it.',
      },
      isEmpty
        ? h(NoConversions, {})
        : html`
            ${h(Totals, { courses, frame })}
            ${h(TimeFilter, { page: 'conversions', query, types })}
            ${h(TypeButtons, { page: 'conversions', query, types })}
            ${h(GrowingTable<Conversion>, {
              caption: 'Conversions',
              columns: conversionColumns,
              rowKey: ({ id }) => id,
              first: list,
              csv: { api: 'data', path: '/conversions', query: filterOf(query), name: 'conversions' },
              load: cursor => conversions.list({ ...filterOf(query), cursor }),
              empty: h(NoMatches, { page: 'conversions', query }),
            })}
          `,
    ),
)

/** The number and the amount of the period, compared, and the amounts in other currencies. */
function Totals({ courses: { count, revenue, others }, frame }: { courses: Courses; frame: Frame }): VNode {
  const code = currency.value
  const shown = (value: Amount) => money(value, code)
  return html`
    ${h(Tiles, {
      tiles: [
        count && courseTile('Conversions', count, { shown: number }),
        revenue && courseTile(`Revenue in ${code}`, revenue, { shown }),
        ...[...others].map(([other, amount]) => ({
          ...{ label: `Revenue in ${other}`, value: money(amount, other), href: hrefWithView({ currency: other }) },
          note: 'not included in the other amounts',
        })),
      ],
    })}
    ${
      revenue &&
      toNumber(revenue.now.total) !== 0 &&
      h(Plot, {
        title: `Revenue in ${code}`,
        moments: revenue.now.moments,
        series: courseSeries('Revenue', revenue, frame),
        zoom: courseZoom(revenue, frame.step),
        ...{ unit: frame.step, shown, axisShown: compactMoney(code), height: 180 },
      })
    }
  `
}

function NoConversions(): VNode {
  return h(EmptyState, {
    title: 'No conversions yet.',
    text: 'A convert event, an order record or a paid invoice creates a conversion.',
    command: convertCommand(),
    action: keyHint('tracking'),
  })
}

export const conversionColumns: Column<Conversion>[] = [
  {
    label: 'Type',
    cell: ({ id, conversion_type: type }) =>
      html`<a href=${link('conversion', { id })}>${h(Breakable, { text: type })}</a>`,
    kind: 'long',
  },
  { label: 'Amount', cell: ({ amount, currency }) => money(amount, currency), kind: 'number' },
  { label: 'Time', cell: ({ occurred_at }) => h(Time, { at: occurred_at }) },
  { label: 'Received via', cell: ({ source }) => receivedVia(source) },
  { label: 'Order or invoice id', cell: ({ source_object_id }) => text(source_object_id), kind: 'long' },
  { label: 'Person', cell: personCell, kind: 'long' },
]

/** Links to the person with an admin key, else to the contact record. */
function personCell(row: Conversion): ComponentChildren {
  const { contact_id: contact, profile_id: profile } = row
  const name = text(row.contact_name ?? row.contact_email ?? contact ?? row.visitor)
  if (isAdmin.value && profile !== null) return html`<a href=${link('person', { id: profile })}>${name}</a>`
  return contact === null ? name : html`<a href=${link('record', { type: 'contacts', id: contact })}>${name}</a>`
}

/** One sale with an address of its own. */
export const conversionPage = definePage(
  'conversion',
  async ({ route: { params }, signal }) => {
    const [row, event] = await Promise.all([
      nullOn(404, conversions.find(params.id, signal)),
      nullOn(403, nullOn(404, events.find(params.id, signal))),
    ])
    return { row, event }
  },
  ({ data: { row, event }, route: { params } }) => {
    const back = html`<a href=${link('conversions')}>All conversions</a>`
    if (!row) {
      const title = 'No conversion has this id. It may have been combined with another report of the same sale.'
      return h(Page, { title: params.id }, h(EmptyState, { title, action: back }))
    }
    const { amount, currency: code, contact_name, contact_email, contact_id } = row
    const order = row.source === 'orders' && row.source_object_id
    return h(
      Page,
      { title: `${words(row.conversion_type)} ${row.source_object_id ?? ''}`.trim() },
      h(Tiles, {
        tiles: [
          { label: 'Amount', value: money(amount, code) },
          {
            ...{ label: 'Person', value: text(contact_name ?? contact_email ?? contact_id ?? row.visitor) },
            href: isAdmin.value && row.profile_id ? link('person', { id: row.profile_id }) : undefined,
          },
          { label: 'Time', value: date(new Date(row.occurred_at)), note: h(Ago, { at: row.occurred_at }) },
        ],
      }),
      h(Facts, {
        facts: [
          ['Occurred', h(Time, { at: row.occurred_at })],
          ['Person', personCell(row)],
          order && ['Order', html`<a href=${link('record', { type: 'orders', id: order })}>${order}</a>`],
          event && ['Source event', html`<a href=${link('event', { id: row.id })}>Show the event</a>`],
          event?.reason && ['Note', sentence(event.reason)],
          ['Type', row.conversion_type],
          row.event_type !== row.conversion_type && ['Event type', text(row.event_type)],
          ['Received via', receivedVia(row.source)],
          row.source_object_id && ['Order or invoice id', row.source_object_id],
          row.visitor && ['Visitor', row.visitor],
          row.company_name && ['Company', row.company_name],
          row.integration_id && ['Integration', row.integration_id],
          [
            'Reported by',
            h(Badge, row.verified ? { text: 'verified sender', tone: 'good' } : { text: 'public tracking key' }),
          ],
          ['Events of public tracking keys about this sale', number(row.claims)],
          ['Id', html`<code>${row.id}</code>`],
        ],
      }),
    )
  },
)
