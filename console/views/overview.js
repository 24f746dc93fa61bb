import { admin, data } from '../api.js'
import { h } from '../dom.js'
import { money, number, plural, time } from '../format.js'
import { emptyState } from '../parts/notices.js'
import { page, section, tiles } from '../parts/page.js'
import { table } from '../parts/table.js'
import { link } from '../routes.js'
import { session } from '../session.js'
import { conversionColumns } from './conversions.js'
import { eventColumns, noEvents } from './events.js'
import { askedFor, report } from './report.js'
import { hasAny, headline, movements } from './subscriptions.js'

const AT_MOST = 100
const LATEST = 8
const LOOK_EVERY_MS = 3_000
const DAY_MS = 86_400_000

export async function view({ signal }) {
  if (session.adminKey && !session.tenant) return noTenant()
  const [activity, revenue] = await Promise.all([latest(signal), revenueOf(signal)])
  const place = h('div', { class: 'page' }, shown(activity))
  const live = h('input', { type: 'checkbox', id: 'live', checked: true })
  let known = markOf(activity)
  const look = async () => {
    const mark = markOf(await newest(signal))
    if (mark === known) return
    const news = await latest(signal)
    known = markOf(news)
    if (!place.contains(document.activeElement)) place.replaceChildren(...shown(news))
  }
  const timer = setInterval(() => {
    if (!live.checked || document.hidden || place.contains(document.activeElement)) return
    // A look that fails is followed by another one: what is shown stays.
    look().catch(() => {})
  }, LOOK_EVERY_MS)
  signal.addEventListener('abort', () => clearInterval(timer))
  return page(
    'Overview',
    { actions: [h('label', { class: 'check' }, live, 'Follow along')] },
    revenue &&
      section(
        'Subscriptions',
        headline(revenue),
        movements(revenue),
        more(['subscriptions'], 'The whole report'),
      ),
    place,
  )
}

/** What changes when something comes in. A key that lacks a scope sees the rest. */
async function newest(signal) {
  const [events, conversions, letters] = await Promise.all([
    read('/events', { limit: LATEST }, signal),
    read('/conversions', { limit: LATEST }, signal),
    administer('/dead-letters', { tenant: session.tenant, limit: AT_MOST }, signal),
  ])
  return { events, conversions, letters }
}

function markOf({ events, conversions, letters }) {
  const lists = [events?.results ?? [], conversions?.results ?? [], letters ?? []]
  return lists.map(list => list.map(({ id }) => id)).join()
}

async function latest(signal) {
  const since = new Date(Date.now() - DAY_MS).toISOString()
  const { tenant } = session
  const [news, recent, sales, products, contacts, orders, backlogs, refused] = await Promise.all([
    newest(signal),
    read('/events', { since }, signal),
    read('/conversions', { since }, signal),
    read('/products', {}, signal),
    read('/contacts', {}, signal),
    read('/orders', {}, signal),
    administer('/overflow', {}, signal),
    administer('/rejections', { tenant, limit: AT_MOST }, signal),
  ])
  const fresh = refused?.filter(({ rejected_at }) => rejected_at > since) ?? null
  return { ...news, recent, sales, products, contacts, orders, backlogs, refused: fresh }
}

function read(path, query, signal) {
  return data(path, { query: { limit: AT_MOST, ...query }, signal }).catch(withoutScope)
}

async function administer(path, query, signal) {
  return session.adminKey ? (await admin(path, { query, signal })).results : null
}

function withoutScope(error) {
  if (error.status === 403) return null
  throw error
}

/** The report's numbers, or null: the overview does not wait for a business without subscriptions. */
async function revenueOf(signal) {
  try {
    const overview = await report(
      'overview',
      { ...(await askedFor(new URLSearchParams(), signal)), page_size: 1 },
      signal,
    )
    return hasAny(overview) ? overview : null
  } catch (error) {
    if (error.status === 401) throw error
    return null
  }
}

function shown(activity) {
  const { events, recent, conversions, sales, products, contacts, orders } = activity
  return [
    section('Last 24 hours', [
      tiles(
        [
          recent && { label: 'Events', value: count(recent), note: lastOf(events), href: link(['events']) },
          sales && {
            label: 'Conversions',
            value: count(sales),
            note: sum(sales),
            href: link(['conversions']),
          },
        ].filter(Boolean),
      ),
    ]),
    activity.letters && section('Status', status(activity)),
    events && section('Newest events', eventList(events)),
    conversions?.results.length > 0 &&
      section('Newest conversions', [
        table({ caption: 'Newest conversions', columns: conversionColumns, rows: conversions.results }),
        more(['conversions'], 'All conversions'),
      ]),
    section('Records', [
      tiles(
        [
          products && { label: 'Products', value: count(products), href: link(['records', 'products']) },
          contacts && { label: 'Contacts', value: count(contacts), href: link(['records', 'contacts']) },
          orders && { label: 'Orders', value: count(orders), href: link(['records', 'orders']) },
        ].filter(Boolean),
      ),
    ]),
  ].filter(Boolean)
}

function eventList(events) {
  if (events.results.length === 0) return noEvents()
  return [
    table({ caption: 'Newest events', columns: eventColumns, rows: events.results }),
    more(['events'], 'All events'),
  ]
}

/** What an operator should know, worst first. */
function status({ letters, backlogs, refused }) {
  const waiting = backlogs.reduce((total, { events }) => total + events, 0)
  const troubles = [
    letters.length > 0 && [
      h('a', { href: link(['dead-letters']) }, countOf(letters, 'dead letter')),
      ' to decide on.',
    ],
    waiting > 0 && [`${plural(waiting, 'event')} over the limit of their source, waiting for budget.`],
    refused.length > 0 && [
      `${countOf(refused, 'webhook request')} refused in 24 hours, the last one `,
      time(refused[0].rejected_at),
      ': ',
      h('a', { href: link(['sources', refused[0].source_config_id]) }, refused[0].code.replaceAll('_', ' ')),
      '.',
    ],
  ].filter(Boolean)
  if (troubles.length === 0)
    return h('p', {}, 'All is well: no dead letters, nothing waiting, nobody refused.')
  return h(
    'ul',
    { class: 'notice' },
    troubles.map(trouble => h('li', {}, trouble)),
  )
}

function countOf(rows, one) {
  return rows.length >= AT_MOST ? `${AT_MOST}+ ${one}s` : plural(rows.length, one)
}

function count({ results, next_cursor }) {
  return `${number(results.length)}${next_cursor === null ? '' : '+'}`
}

function lastOf({ results }) {
  return results.length > 0 ? ['last ', time(results[0].occurred_at)] : 'none yet'
}

/** What the sales come to, in each currency. */
function sum({ results, next_cursor }) {
  const totals = new Map()
  for (const { amount, currency } of results)
    if (typeof amount === 'number' && currency) totals.set(currency, (totals.get(currency) ?? 0) + amount)
  const texts = [...totals].map(([currency, total]) => money(total, currency))
  return texts.length > 0 ? `${texts.join(', ')}${next_cursor === null ? '' : ' and more'}` : null
}

function more(parts, label) {
  return h('p', { class: 'further' }, h('a', { href: link(parts) }, label))
}

function noTenant() {
  return page(
    'Overview',
    {},
    emptyState({
      title: 'No tenant yet.',
      text: 'A tenant is whose data it is. Make the first one, then load this page again:',
      curl: 'npm run kontor -- tenant create NAME',
    }),
  )
}
