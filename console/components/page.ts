import type { ComponentChildren, VNode } from 'preact'
import { number } from '../format.ts'
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

export type Tile = { label: string; value: string; note?: ComponentChildren; href?: string }

/** Large numbers side by side. */
export function Tiles({ tiles }: { tiles: (Tile | false | null)[] }): VNode {
  return html`
    <ul class="tiles">
      ${tiles.map(
        tile =>
          tile &&
          html`<li>
            <span class="label">${tile.href ? html`<a href=${tile.href}>${tile.label}</a>` : tile.label}</span>
            <strong>${tile.value}</strong>
            ${tile.note && html`<span class="faint">${tile.note}</span>`}
          </li>`,
      )}
    </ul>
  `
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

const WIDTH = 96
const HEIGHT = 24

/** Counts as small bars. `label` describes them for screen readers. */
function Spark({ label, values }: { label: string; values: number[] }): VNode {
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

export type Sign = {
  label: string
  value: string
  note?: ComponentChildren
  href?: string
  spark?: { label: string; values: number[] }
}

/** Small numbers side by side, some with bars of their history. */
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

/** The last 24 hours, per hour. */
export function activitySign(label: string, hours: { last_24_hours: number; by_hour: number[] }): Sign {
  return {
    label,
    value: number(hours.last_24_hours),
    spark: { label: `${label}, per hour`, values: hours.by_hour },
  }
}
