import htm from 'htm'
import { type ComponentChildren, createElement, type VNode } from 'preact'

/** Markup: html`<p class="faint">${text}</p>`. Text goes in as text: nothing that was received becomes markup. */
export const html = htm.bind(createElement) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode

/** A component with its props. In a template it would work too, but only here does the compiler check the props. */
export function h<Props>(
  component: (props: Props) => VNode | null,
  props: NoInfer<Props> & { key?: string },
  ...children: ComponentChildren[]
): VNode {
  return createElement(component as never, props as never, ...children)
}
