import type { VNode } from 'preact'
import { html } from '../html.ts'

/** A sentence of the server, with what stands in `backticks` as code. */
export function Prose({ text }: { text: string }): VNode {
  const parts = text.split('`')
  return html`<span>${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}</span>`
}
