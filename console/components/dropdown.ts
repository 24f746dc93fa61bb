import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { html } from '../html.ts'

type DropdownProps = { id: string; label: ComponentChildren; title: string; children?: ComponentChildren }

/** A button that opens a panel. Escape, a click elsewhere and a navigation close it. */
export function Dropdown({ id, label, title, children }: DropdownProps): VNode {
  const element = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const details = element.current!
    const close = () => {
      details.open = false
    }
    const pressed = (event: PointerEvent) => {
      if (!details.contains(event.target as Node)) close()
    }
    const typed = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || !details.open) return
      close()
      details.querySelector('summary')!.focus()
    }
    addEventListener('pointerdown', pressed)
    addEventListener('hashchange', close)
    details.addEventListener('keydown', typed)
    return () => {
      removeEventListener('pointerdown', pressed)
      removeEventListener('hashchange', close)
      details.removeEventListener('keydown', typed)
    }
  }, [])
  return html`
    <details class="dropdown" id=${id} ref=${element}>
      <summary class="button" title=${title}>${label}</summary>
      <div class="panel">${children}</div>
    </details>
  `
}
