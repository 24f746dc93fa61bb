import type { ComponentChildren, VNode } from 'preact'
import { type Amount, toNumber } from '../amount.ts'
import { number, percent } from '../format.ts'
import { h, html } from '../html.ts'

type PageProps = {
  title: string
  /** Buttons beside the title. */
  actions?: ComponentChildren
  /** One sentence about the page. */
  lead?: ComponentChildren
  children?: ComponentChildren
}

/** Longer titles may be cut; the tooltip has the whole title. */
const LONG_TITLE = 100

/** The frame of every page. */
export function Page({ title, actions, lead, children }: PageProps): VNode {
  return html`
    <div class="page">
      <div class="title">
        <h1 tabindex="-1" class="clamped" title=${title.length > LONG_TITLE ? title : null}>${title}</h1>
        ${actions && html`<div class="actions">${actions}</div>`}
      </div>
      ${lead && html`<p class="lead faint">${lead}</p>`}
      ${children}
    </div>
  `
}

export function Section({ title, children }: { title: string; children?: ComponentChildren }): VNode {
  return html`<section><h2>${title}</h2>${children}</section>`
}

/** A name and its value. Falsy entries are skipped. */
export type Fact = readonly [name: string, value: ComponentChildren]

export function Facts({ facts }: { facts: (Fact | false | null | undefined | '' | 0)[] }): VNode {
  const given = facts.filter(fact => Array.isArray(fact)) as Fact[]
  return html`
    <dl class="facts">
      ${given.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>
  `
}

/** A value beside that of the comparison. */
export type Change = {
  now: Amount
  before: Amount
  /** Formats the earlier value. */
  shown(value: Amount): string
  /** Whether a decrease is good, as of churn. */
  isLowerBetter?: boolean
}

export type Tile = {
  label: string
  value: string
  note?: ComponentChildren
  /** The list behind the number. */
  href?: string | undefined
  change?: Change | null | undefined
  spark?: { label: string; values: (number | null)[]; isLine?: boolean; isBad?: boolean } | undefined
}

/** Numbers side by side, each with its change, its history and a link to the list behind it. */
export function Tiles({ tiles, isSmall = false }: { tiles: (Tile | false | null)[]; isSmall?: boolean }): VNode {
  return html`<ul class=${isSmall ? 'tiles small' : 'tiles'}>${tiles.map(tile => tile && h(TileItem, tile))}</ul>`
}

function TileItem({ label, value, note, href, change, spark }: Tile): VNode {
  return html`
    <li>
      <span class="label">${href ? html`<a href=${href}>${label}</a>` : label}</span>
      <strong>${value}</strong>
      ${change && h(ChangeNote, change)}
      ${note && html`<span class="faint">${note}</span>`}
      ${spark && spark.values.length > 1 && h(Spark, spark)}
    </li>
  `
}

/** ▲ 12% from €100 */
export function ChangeNote({ now, before, shown, isLowerBetter = false }: Change): VNode {
  const [next, last] = [toNumber(now), toNumber(before)]
  if (last === 0) return html`<span class="change faint">${next === 0 ? 'unchanged' : 'nothing to compare with'}</span>`
  const share = Math.round((Math.abs(next - last) / Math.abs(last)) * 1000) / 1000
  const isUp = next > last
  const tone = next === last ? 'same' : isUp !== isLowerBetter ? 'up' : 'down'
  const words = next === last ? 'unchanged' : `${isUp ? '▲' : '▼'} ${percent(share)}`
  const label = next === last ? 'unchanged' : `${isUp ? 'up' : 'down'} ${percent(share)}`
  return html`<span class="change"><span class=${tone} aria-label=${label} role="img">${words}</span>${` from ${shown(before)}`}</span>`
}

type TabsProps = { label: string; tabs: { name: string; title: string; href: string }[]; current: string }

export function Tabs({ label, tabs, current }: TabsProps): VNode {
  return html`
    <nav class="tabs" aria-label=${label}>
      <ul>
        ${tabs.map(
          ({ name, title, href }) =>
            html`<li><a href=${href} aria-current=${name === current ? 'page' : null}>${title}</a></li>`,
        )}
      </ul>
    </nav>
  `
}

export function JsonView({ value, label }: { value: unknown; label: string }): VNode {
  return h(TextView, { text: JSON.stringify(value, null, 2), label })
}

export function TextView({ text, label }: { text: string; label: string }): VNode {
  return html`<pre class="json" tabindex="0" role="region" aria-label=${label}>${text}</pre>`
}

const WIDTH = 120
const HEIGHT = 28

/** Values as small bars, or as a line. `label` describes them for screen readers. */
function Spark({ label, values, isLine = false, isBad = false }: NonNullable<Tile['spark']>): VNode {
  const known = values.map(value => value ?? 0)
  const words = `${label}: ${values.map(value => (value === null ? 'unknown' : number(value))).join(', ')}`
  return html`
    <svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${words}>
      <title>${words}</title>
      ${isLine ? sparkLine(known) : sparkBars(known, isBad)}
    </svg>
  `
}

/** From the lowest to the highest value: a line shows the course, not the size. */
function sparkLine(values: number[]): VNode {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const points = values.map((value, index) => {
    const x = (index / (values.length - 1)) * WIDTH
    const y = high === low ? HEIGHT / 2 : HEIGHT - 2 - ((value - low) / (high - low)) * (HEIGHT - 4)
    return `${x.toFixed(1)},${y.toFixed(1)}`
  })
  return html`
    <polygon class="area" points=${`0,${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`} />
    <polyline class="course" points=${points.join(' ')} vector-effect="non-scaling-stroke" />
  `
}

function sparkBars(values: number[], isBad: boolean): VNode[] {
  const highest = Math.max(...values.map(Math.abs), 1e-9)
  const lowest = Math.min(0, ...values)
  const zero = HEIGHT * (1 - (lowest < 0 ? 0.5 : 0))
  const step = WIDTH / values.length
  return values.map((value, index) => {
    const height = value === 0 ? 0.5 : Math.max(1.5, (Math.abs(value) / highest) * (lowest < 0 ? HEIGHT / 2 : HEIGHT))
    const kind = value === 0 ? 'rest' : value < 0 || isBad ? 'bad' : 'accent'
    const y = value < 0 ? zero : zero - height
    return html`<rect class=${kind} x=${index * step} y=${y} width=${step * 0.8} height=${height} />`
  })
}

/** The last 24 hours, per hour. */
export function activityTile(label: string, hours: { last_24_hours: number; by_hour: number[] }, isBad = false): Tile {
  return {
    label,
    value: number(hours.last_24_hours),
    spark: { label: `${label}, per hour`, values: hours.by_hour, isBad },
  }
}
