import { h, say } from '../dom.js'
import { plural } from '../format.js'
import { whileBusy } from './forms.js'

/**
 * A table. Columns: { label, cell: row => text or element, number: right-aligned, minor: gone on small screens }.
 * The first column names the row.
 */
export function table({ caption, columns, rows }) {
  const body = h('tbody', {}, rows.map(rowOf(columns)))
  const head = columns.map(column => h('th', { scope: 'col', class: classOf(column) }, column.label))
  return h(
    'div',
    { class: 'scroller' },
    h('table', {}, h('caption', { class: 'unseen' }, caption), h('thead', {}, h('tr', {}, head)), body),
  )
}

/** A table that goes on: `load(cursor)` brings the next page. */
export function growingTable({ caption, columns, first, load, empty }) {
  if (first.results.length === 0) return empty
  const element = table({ caption, columns, rows: first.results })
  const body = element.querySelector('tbody')
  let cursor = first.next_cursor
  const more = h('button', { type: 'button', class: 'more', hidden: cursor === null }, 'Show more')
  const trouble = h('div', { class: 'aside' })
  const grow = async () => {
    const page = await load(cursor)
    body.append(...page.results.map(rowOf(columns)))
    cursor = page.next_cursor
    more.hidden = cursor === null
    say(`${plural(page.results.length, 'row')} more, ${body.children.length} in all`)
  }
  more.addEventListener('click', () => whileBusy(more, trouble, grow))
  return h('div', {}, element, trouble, more)
}

/** A list of a report: { results, page, pages, count }; `linkTo(page)` is the address of another page. */
export function reportTable({ caption, columns, list, linkTo, empty }) {
  if (list.count === 0) return empty
  const { page, pages, count } = list
  const step = (label, target, isThere) =>
    isThere ? h('a', { href: linkTo(target) }, label) : h('span', { class: 'faint' }, label)
  return h('div', {}, [
    table({ caption, columns, rows: list.results }),
    pages > 1 &&
      h('p', { class: 'pages' }, [
        step('Previous', page - 1, page > 1),
        h('span', {}, `Page ${page} of ${pages} (${plural(count, 'row')})`),
        step('Next', page + 1, page < pages),
      ]),
  ])
}

function rowOf(columns) {
  return row =>
    h(
      'tr',
      {},
      columns.map((column, index) =>
        index === 0
          ? h('th', { scope: 'row', class: classOf(column) }, column.cell(row))
          : h('td', { class: classOf(column) }, column.cell(row)),
      ),
    )
}

function classOf({ number, minor, long }) {
  return [number && 'number', minor && 'minor', long && 'long'].filter(Boolean).join(' ') || null
}
