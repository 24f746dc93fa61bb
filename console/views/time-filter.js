import { h } from '../dom.js'
import { field, form, toInstant, toLocal } from '../parts/forms.js'
import { link } from '../routes.js'

/** The filters that events and conversions share; they live in the address. */
export function timeFilter(section, query) {
  const control = (id, type, value) => h('input', { id, type, value, autocomplete: 'off' })
  const element = form(
    {
      submit: 'Filter',
      class: 'filter',
      run: ({ event_type, since, until }) => {
        location.hash = link([section], { event_type, since: toInstant(since), until: toInstant(until) })
      },
    },
    field('Type', control('event_type', 'text', query.get('event_type') ?? '')),
    field('Since', control('since', 'datetime-local', toLocal(query.get('since')))),
    field('Until', control('until', 'datetime-local', toLocal(query.get('until')))),
  )
  if (query.size > 0) {
    element.querySelector('.end').append(h('a', { href: link([section]) }, 'Clear'))
  }
  return element
}

export function filtersOf(query) {
  return { event_type: query.get('event_type'), since: query.get('since'), until: query.get('until') }
}
