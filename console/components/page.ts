import type { ComponentChildren, VNode } from 'preact'
import { h, html } from '../html.ts'

type PageProps = {
  title: string
  /** What can be done here. */
  actions?: ComponentChildren
  /** What this page is about, in a sentence. */
  lead?: ComponentChildren
  children?: ComponentChildren
}

/** Longer ones may be cut, and are told whole to whoever points at them. */
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

/** A name and its value; what is false is left out. */
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

/** Big numbers side by side. */
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

/** Links between the parts of one section. */
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

/** Whatever was received, laid out. */
export function JsonView({ value, label }: { value: unknown; label: string }): VNode {
  return h(TextView, { text: JSON.stringify(value, null, 2), label })
}

export function TextView({ text, label }: { text: string; label: string }): VNode {
  return html`<pre class="json" tabindex="0" role="region" aria-label=${label}>${text}</pre>`
}
