import htm from 'htm'
import { type ComponentChildren, createElement, type VNode } from 'preact'
import { visible } from './format.ts'
import { withView } from './view.ts'

/** Markup: html`<p class="faint">${text}</p>`. Values are inserted as text, never as markup. */
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode {
  // Text at the top level has not passed through `element`.
  return shown(markup(strings, ...values)) as VNode
}

const markup = htm.bind(element)

/** Creates a component. Unlike in a template, the compiler checks the props. */
export function h<Props>(
  component: (props: Props) => VNode | null,
  props: NoInfer<Props> & { key?: string },
  ...children: ComponentChildren[]
): VNode {
  return createElement(component as never, props as never, ...children)
}

/** Attributes that are shown as text. */
const READ = ['title', 'aria-label'] as const

/** Everything shown passes here, so that invisible characters in received text become visible. */
function element(name: string, props: Record<string, unknown> | null, ...children: unknown[]): VNode {
  for (const attribute of READ) {
    const text = props?.[attribute]
    if (typeof text === 'string') props![attribute] = visible(text)
  }
  // A link keeps the tenant, period, comparison and currency, also in a new tab.
  if (name === 'a' && typeof props?.href === 'string') props.href = withView(props.href)
  return createElement(name, props, ...(children.map(shown) as ComponentChildren[]))
}

function shown(child: unknown): unknown {
  if (typeof child === 'string') return visible(child)
  return Array.isArray(child) ? child.map(shown) : child
}
