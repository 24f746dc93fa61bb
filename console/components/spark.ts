import type { VNode } from 'preact'
import { number } from '../format.ts'
import { html } from '../html.ts'

const WIDTH = 96
const HEIGHT = 24

/** A few counts in a row, as small bars; `label` says what they are, for those who do not see them. */
export function Spark({ label, values }: { label: string; values: number[] }): VNode {
  const highest = Math.max(...values, 1)
  const step = WIDTH / values.length
  const words = `${label}: ${values.map(number).join(', ')}`
  return html`
    <svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="xMinYMax meet" role="img" aria-label=${words}>
      <title>${words}</title>
      ${values.map((value, index) => {
        const height = value === 0 ? 1 : Math.max(2, (value / highest) * HEIGHT)
        const kind = value === 0 ? 'rest' : 'gain'
        return html`<rect class=${kind} x=${index * step} y=${HEIGHT - height} width=${step - 1} height=${height} />`
      })}
    </svg>
  `
}
