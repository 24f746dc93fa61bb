import type { VNode } from 'preact'
import { type Amount, isNegative, toNumber } from '../amount.ts'
import { percent, signedMoney } from '../format.ts'
import { h, html } from '../html.ts'

const WIDTH = 1000
const HEIGHT = 20
const THIN = 4

/** Losses are negative. */
type Change = {
  label: string
  amount: Amount
  before?: Amount | null
  note: string
  href?: string
  /** The class of its color; default: by its sign. */
  color?: string
}

type ChangeBarsProps = { caption: string; changes: Change[]; currency: string }

/**
 * A table of changes with bars to both sides of zero. The numbers are also given as text.
 */
export function ChangeBars({ caption, changes, currency }: ChangeBarsProps): VNode {
  const scale = computeScale(changes)
  const isCompared = changes.some(({ before }) => before != null)
  return html`
    <table class="bars">
      <caption class="unseen">${caption}</caption>
      <tbody>
        <tr class=${isCompared ? 'faint' : 'unseen'}>
          <th scope="col"><span class="unseen">Change</span></th>
          <td class="drawing"></td>
          <th scope="col" class="number">This period</th>
          ${isCompared && html`<th scope="col" class="number">Comparison</th>`}
        </tr>
        ${changes.map(
          ({ label, amount, before, note, href, color }) => html`
            <tr>
              <th scope="row" title=${note}>${href ? html`<a href=${href}>${label}</a>` : label}</th>
              <td class="drawing" aria-hidden="true">${h(ChangeBar, { amount, color, scale })}</td>
              <td class="number">${signedMoney(amount, currency)}</td>
              ${isCompared && html`<td class="number faint">${signedMoney(before ?? 0, currency)}</td>`}
            </tr>
          `,
        )}
      </tbody>
    </table>
  `
}

/** The position of zero and the width of one unit. */
type Scale = { zero: number; unit: number }

/** Each side is as wide as its longest bar. */
function computeScale(changes: Change[]): Scale {
  const amounts = changes.map(({ amount }) => toNumber(amount))
  const [loss, gain] = [Math.max(0, ...amounts.map(amount => -amount)), Math.max(0, ...amounts)]
  const unit = loss + gain === 0 ? 0 : WIDTH / (loss + gain)
  return { zero: loss * unit, unit }
}

type ChangeBarProps = { amount: Amount; color: string | undefined; scale: Scale }

function ChangeBar({ amount, color, scale: { zero, unit } }: ChangeBarProps): VNode {
  const size = Math.abs(toNumber(amount))
  const length = size === 0 ? 0 : Math.max(size * unit, THIN)
  const isLoss = isNegative(amount)
  const start = Math.max(0, Math.min(isLoss ? zero - length : zero, WIDTH - length))
  return html`
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" focusable="false">
      <rect class=${color ?? (isLoss ? 'bad' : 'accent')} x=${start} y="2" width=${length} height=${HEIGHT - 4} />
      <line x1=${zero} x2=${zero} y1="0" y2=${HEIGHT} vector-effect="non-scaling-stroke" />
    </svg>
  `
}

/** A percentage with a thin bar; `isWide`: a bar as wide as its column, without the number. */
export function ShareBar({ share, isWide = false }: { share: Amount; isWide?: boolean }): VNode {
  const width = Math.max(0, Math.min(1, toNumber(share))) * 100
  return html`
    <span class=${isWide ? 'share wide' : 'share'}>
      ${!isWide && percent(share)}
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <rect class="rest" width="100" height="6" />
        <rect class="accent" width=${width} height="6" />
      </svg>
    </span>
  `
}
