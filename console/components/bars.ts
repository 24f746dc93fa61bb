import type { VNode } from 'preact'
import { type Amount, isNegative, toNumber } from '../amount.ts'
import { percent, signedMoney } from '../format.ts'
import { h, html } from '../html.ts'

const HALF = 500
const HEIGHT = 20
const THIN = 4

/** What was lost is negative. */
export type Change = { label: string; amount: Amount; note: string }

type ChangeBarsProps = { caption: string; changes: Change[]; currency: string }

/**
 * Changes as bars that grow to both sides of zero, in a table: the drawing is for the eye, the same numbers stand
 * beside it as text.
 */
export function ChangeBars({ caption, changes, currency }: ChangeBarsProps): VNode {
  const widest = Math.max(...changes.map(({ amount }) => Math.abs(toNumber(amount))), 0)
  return html`
    <table class="bars">
      <caption class="unseen">${caption}</caption>
      <thead class="unseen">
        <tr><th scope="col">Change</th><th scope="col">Drawn</th><th scope="col">Amount</th></tr>
      </thead>
      <tbody>
        ${changes.map(
          ({ label, amount, note }) => html`
            <tr>
              <th scope="row" title=${note}>${label}</th>
              <td class="drawing" aria-hidden="true">${h(ChangeBar, { amount, widest })}</td>
              <td class="number">${signedMoney(amount, currency)}</td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `
}

function ChangeBar({ amount, widest }: { amount: Amount; widest: number }): VNode {
  const size = Math.abs(toNumber(amount))
  const length = size === 0 ? 0 : Math.max((size / widest) * HALF, THIN)
  const isLoss = isNegative(amount)
  return html`
    <svg viewBox="0 0 ${2 * HALF} ${HEIGHT}" preserveAspectRatio="none" focusable="false">
      <rect class=${isLoss ? 'loss' : 'gain'} x=${isLoss ? HALF - length : HALF} y="2" width=${length} height=${HEIGHT - 4} />
      <line x1=${HALF} x2=${HALF} y1="0" y2=${HEIGHT} vector-effect="non-scaling-stroke" />
    </svg>
  `
}

/** A fraction of a whole as text, with a thin bar beside it. */
export function ShareBar({ share }: { share: Amount }): VNode {
  const width = Math.max(0, Math.min(1, toNumber(share))) * 100
  return html`
    <span class="share">
      ${percent(share)}
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <rect class="rest" width="100" height="6" />
        <rect class="gain" width=${width} height="6" />
      </svg>
    </span>
  `
}
