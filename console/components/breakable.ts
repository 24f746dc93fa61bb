import type { VNode } from 'preact'
import { html } from '../html.ts'

/** A name like invoice.payment_failed, which breaks after its dots and dashes where it must break. */
export function Breakable({ text }: { text: string }): VNode {
  const parts = text.split(/(?<=[._:/-])(?=\w)/)
  return html`<span>${parts.map((part, index) => (index > 0 ? [html`<wbr />`, part] : part))}</span>`
}
