import type { ComponentChildren, VNode } from 'preact'
import { number } from '../format.ts'
import { h, html } from '../html.ts'
import { Spark } from './spark.ts'

export type Sign = {
  label: string
  value: string
  note?: ComponentChildren
  href?: string
  spark?: { label: string; values: number[] }
}

/** Small numbers side by side, each with how it came about where there is something to draw. */
export function Signs({ signs }: { signs: (Sign | null)[] }): VNode {
  return html`<ul class="tiles small">${signs.map(sign => sign && h(SignTile, sign))}</ul>`
}

function SignTile({ label, value, note, href, spark }: Sign): VNode {
  return html`
    <li>
      <span class="label">${href ? html`<a href=${href}>${label}</a>` : label}</span>
      <strong>${value}</strong>
      ${note && html`<span class="faint">${note}</span>`}
      ${spark && spark.values.length > 0 && h(Spark, spark)}
    </li>
  `
}

/** Of one day, by the hour. */
export function activitySign(label: string, hours: { last_24_hours: number; by_hour: number[] }): Sign {
  return {
    label,
    value: number(hours.last_24_hours),
    spark: { label: `${label}, per hour`, values: hours.by_hour },
  }
}
