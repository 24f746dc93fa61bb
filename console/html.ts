import htm from 'htm'
import { type ComponentChildren, createElement, type VNode } from 'preact'
import { visible } from './visible.ts'

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
