import htm from 'htm'
import { type ComponentChildren, createElement, type VNode } from 'preact'

/** Markup: html`<p class="faint">${text}</p>`. Text goes in as text: nothing that was received becomes markup. */
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode {
  // What stands beside elements, or alone, is in no element yet.
  return shown(markup(strings, ...values)) as VNode
}

const markup = htm.bind(element)

/** A component with its props. In a template it would work too, but only here does the compiler check the props. */
export function h<Props>(
  component: (props: Props) => VNode | null,
  props: NoInfer<Props> & { key?: string },
  ...children: ComponentChildren[]
): VNode {
  return createElement(component as never, props as never, ...children)
}

/** Attributes that are read as text. */
const READ = ['title', 'aria-label'] as const

/** Whatever is shown passes here: what strangers wrote shows also what is not seen in it. */
function element(name: string, props: Record<string, unknown> | null, ...children: unknown[]): VNode {
  for (const attribute of READ) {
    const text = props?.[attribute]
    if (typeof text === 'string') props![attribute] = visible(text)
  }
  return createElement(name, props, ...(children.map(shown) as ComponentChildren[]))
}

function shown(child: unknown): unknown {
  if (typeof child === 'string') return visible(child)
  return Array.isArray(child) ? child.map(shown) : child
}

/**
 * Signs that nobody sees, and that change what is seen around them: controls, overrides of the direction of writing,
 * marks of zero width. What joins letters (U+200C, U+200D) stays, languages and emoji need it; so do blanks and ends of lines.
 */
const INVISIBLE =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g
const HAS_INVISIBLE = new RegExp(INVISIBLE.source)

/** A text of strangers, with what is not seen in it written out: an order 10‹U+202E›123 is not 321 10. */
export function visible(text: string): string {
  return HAS_INVISIBLE.test(text) ? text.replace(INVISIBLE, escapeCharacter) : text
}

function escapeCharacter(sign: string): string {
  return `‹U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}›`
}
