import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { html } from '../html.ts'

/** What is shown only this once, such as a new key: it takes the focus, so that nobody misses it. */
export function ShownOnce({ title, children }: { title: string; children?: ComponentChildren }): VNode {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current!.focus(), [])
  return html`<div class="once"><h2 tabindex="-1" ref=${heading}>${title}</h2>${children}</div>`
}
