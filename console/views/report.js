import { data } from '../api.js'
import { h } from '../dom.js'
import { field, form } from '../parts/forms.js'
import { emptyState } from '../parts/notices.js'
import { page, tabs } from '../parts/page.js'
import { link } from '../routes.js'
import { session } from '../session.js'
import { subscriptionLine, whereTokensAre } from './samples.js'

const USUAL = [
  'EUR',
  'USD',
  'GBP',
  'CHF',
  'DKK',
  'NOK',
  'SEK',
  'PLN',
  'CZK',
  'CAD',
  'AUD',
  'NZD',
  'JPY',
  'INR',
  'BRL',
]
const TABS = [
  ['subscriptions', 'Overview', []],
  ['attention', 'Attention', ['attention']],
  ['acquisition', 'Acquisition', ['acquisition']],
  ['excluded', 'Excluded', ['excluded']],
]

/** What reports are asked for: the currency is the one in the address, the last one, or that of the newest sale. */
export async function askedFor(query, signal) {
  const currency = (query.get('currency') ?? session.currency ?? (await usualCurrency(signal))).toUpperCase()
  return { currency, as_of: query.get('as_of') ?? '' }
}

async function usualCurrency(signal) {
  const { results } = await data('/conversions', { query: { limit: 20 }, signal }).catch(error => {
    if (error.status !== 403) throw error
    return { results: [] }
  })
  return results.find(({ currency }) => currency)?.currency ?? 'EUR'
}

/** A report, or null where there is nothing to report on yet. */
export async function report(name, query, signal) {
  try {
    const found = await data(`/subscriptions/${name}`, { query, signal })
    session.currency = query.currency
    return found
  } catch (error) {
    if (error.status === 404) return null
    throw error
  }
}

/** The frame of the subscription views: what is asked for, where one is, and the report or what to do without one. */
export function reportPage(name, parts, asked, content) {
  const places = TABS.map(([tab, title, more]) => ({
    name: tab,
    title,
    href: link(['subscriptions', ...more], asked),
  }))
  return page(
    'Subscriptions',
    {},
    tabs('Reports', places, name),
    askForm(parts, asked),
    content ??
      emptyState({
        title: 'No subscription data yet.',
        text: 'Connect Stripe as a source, or send subscription and invoice events yourself:',
        curl: subscriptionLine(),
        action: whereTokensAre(),
      }),
  )
}

function askForm(parts, { currency, as_of }) {
  const list = h(
    'datalist',
    { id: 'currencies' },
    USUAL.map(code => h('option', { value: code })),
  )
  return form(
    {
      submit: 'Show',
      class: 'filter',
      run: values => {
        const asked = { currency: values.currency.trim().toUpperCase(), as_of: values.as_of }
        location.hash = link(parts, asked)
      },
    },
    field(
      'Currency',
      h('input', { id: 'currency', value: currency, list: 'currencies', size: 5, autocomplete: 'off' }),
    ),
    field('As of', h('input', { id: 'as_of', type: 'date', value: as_of.slice(0, 10) })),
    list,
  )
}

/** The address of another page of one of a report's lists. */
export function pageLink(parts, query, name) {
  return target => link(parts, { ...Object.fromEntries(query), [name]: target })
}

export function accountLink(customer, { currency, as_of }, label = customer) {
  if (!customer) return label ?? '–'
  return h('a', { href: link(['subscriptions', 'account'], { customer, currency, as_of }) }, label)
}
