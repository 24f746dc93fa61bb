import { h, svg } from '../dom.js'
import { signedMoney } from '../format.js'

const HALF = 500
const HEIGHT = 20
const THIN = 4

/**
 * Changes as bars that grow to both sides of zero, in a table: the drawing is for the eye, the same numbers stand
 * beside it as text. Rows: { label, amount, note }, what was lost being negative.
 */
export function changeBars({ caption, rows, currency }) {
  const widest = Math.max(...rows.map(({ amount }) => Math.abs(amount)), 0)
  return h(
    'table',
    { class: 'bars' },
    h('caption', { class: 'unseen' }, caption),
    h(
      'thead',
      { class: 'unseen' },
      h(
        'tr',
        {},
        ['Change', 'Drawn', 'Amount'].map(label => h('th', { scope: 'col' }, label)),
      ),
    ),
    h(
      'tbody',
      {},
      rows.map(({ label, amount, note }) =>
        h('tr', {}, [
          h('th', { scope: 'row', title: note }, label),
          h('td', { class: 'drawing', 'aria-hidden': 'true' }, bar(amount, widest)),
          h('td', { class: 'number' }, signedMoney(amount, currency)),
        ]),
      ),
    ),
  )
}

function bar(amount, widest) {
  const length = widest === 0 ? 0 : Math.max((Math.abs(amount) / widest) * HALF, amount === 0 ? 0 : THIN)
  return svg(
    'svg',
    { viewBox: `0 0 ${2 * HALF} ${HEIGHT}`, preserveAspectRatio: 'none', focusable: 'false' },
    svg('rect', {
      class: amount < 0 ? 'loss' : 'gain',
      x: amount < 0 ? HALF - length : HALF,
      y: 2,
      width: length,
      height: HEIGHT - 4,
    }),
    svg('line', { x1: HALF, x2: HALF, y1: 0, y2: HEIGHT, 'vector-effect': 'non-scaling-stroke' }),
  )
}

/** A share of a whole, 0 to 1, as a thin bar. */
export function shareBar(share) {
  return svg(
    'svg',
    {
      class: 'share',
      viewBox: '0 0 100 6',
      preserveAspectRatio: 'none',
      'aria-hidden': 'true',
      focusable: 'false',
    },
    svg('rect', { class: 'rest', width: 100, height: 6 }),
    svg('rect', { class: 'gain', width: Math.max(0, Math.min(1, share ?? 0)) * 100, height: 6 }),
  )
}
