import { h } from '../dom.js'

/** A view: its title, what can be done in it, and what it shows. */
export function page(title, { actions = [], lead } = {}, ...content) {
  return h('div', { class: 'page' }, [
    h('div', { class: 'title' }, h('h1', { tabindex: -1 }, title), h('div', { class: 'actions' }, actions)),
    lead && h('p', { class: 'faint' }, lead),
    content,
  ])
}

export function section(title, ...content) {
  return h('section', {}, h('h2', {}, title), content)
}

/** Names and values: facts([['Id', id], …]). */
export function facts(pairs) {
  return h(
    'dl',
    { class: 'facts' },
    pairs.filter(Boolean).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  )
}

/** Big numbers side by side: { label, value, note, href }. */
export function tiles(items) {
  return h(
    'ul',
    { class: 'tiles' },
    items.map(({ label, value, note, href }) =>
      h(
        'li',
        {},
        h('span', { class: 'label' }, href ? h('a', { href }, label) : label),
        h('strong', {}, value),
        note && h('span', { class: 'faint' }, note),
      ),
    ),
  )
}

export function json(value, label = 'JSON') {
  return h(
    'pre',
    { class: 'json', tabindex: 0, role: 'region', 'aria-label': label },
    JSON.stringify(value, null, 2),
  )
}

/** Links between the parts of one section. */
export function tabs(label, items, current) {
  return h(
    'nav',
    { class: 'tabs', 'aria-label': label },
    h(
      'ul',
      {},
      items.map(({ name, title, href }) =>
        h('li', {}, h('a', { href, 'aria-current': name === current && 'page' }, title)),
      ),
    ),
  )
}
