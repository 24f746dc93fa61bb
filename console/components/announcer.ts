import { signal } from '@preact/signals'
import type { VNode } from 'preact'
import { html } from '../html.ts'

const announcement = signal('')
const toasts = signal<{ id: number; text: string }[]>([])
const SHOWN_MS = 4_000
let last = 0

/** Announces a change of the page to screen readers. */
export function announce(text: string): void {
  announcement.value = text
}

/** Shows the result of an action for a few seconds, and announces it. */
export function toast(text: string): void {
  announce(text)
  const id = ++last
  toasts.value = [...toasts.value, { id, text }]
  setTimeout(() => {
    toasts.value = toasts.value.filter(each => each.id !== id)
  }, SHOWN_MS)
}

export function Announcer(): VNode {
  return html`
    <p class="unseen" role="status" aria-live="polite">${announcement.value}</p>
    <div class="toasts" aria-hidden="true">${toasts.value.map(({ id, text }) => html`<p key=${id}>${text}</p>`)}</div>
  `
}
