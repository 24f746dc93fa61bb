import { signal } from '@preact/signals'
import type { VNode } from 'preact'
import { html } from '../html.ts'

const announcement = signal('')

/** Announces a change of the page to screen readers. */
export function announce(text: string): void {
  announcement.value = text
}

export function Announcer(): VNode {
  return html`<p class="unseen" role="status" aria-live="polite">${announcement.value}</p>`
}
