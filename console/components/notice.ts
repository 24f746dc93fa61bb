import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { Problem } from '../api/request.ts'
import { h, html } from '../html.ts'
import { Copyable } from './copyable.ts'

/** What went wrong, in the words of the server, with the id that its log knows it by. */
export function ProblemNotice({ error, retry }: { error: unknown; retry?: () => unknown }): VNode {
  const problem = error instanceof Problem ? error : null
  const mayPass = problem === null || problem.status === 0 || problem.status >= 500
  return html`
    <div class="problem" role="alert">
      <p>
        ${problem && html`<strong>${problem.title}. </strong>`}
        ${error instanceof Error ? error.message : String(error)}
      </p>
      ${
        problem?.errors.some(({ message }) => !problem.message.includes(message)) &&
        html`<ul>
          ${problem.errors.map(({ pointer, message }) => html`<li><code>${pointer || 'body'}</code> ${message}</li>`)}
        </ul>`
      }
      ${problem?.requestId && html`<p class="faint">Request <code>${problem.requestId}</code></p>`}
      ${retry && mayPass && html`<button type="button" onClick=${retry}>Try again</button>`}
    </div>
  `
}

/** The place where a page shows what went wrong with its actions; nothing while all is well. */
export function ProblemArea({ problem }: { problem: ReadonlySignal<unknown> }): VNode | null {
  return problem.value === null ? null : h(ProblemNotice, { error: problem.value })
}

type EmptyStateProps = {
  title: string
  text?: ComponentChildren
  /** A command that brings in the first row. */
  command?: string
  action?: ComponentChildren
}

/** A list without rows says how to get some. */
export function EmptyState({ title, text, command, action }: EmptyStateProps): VNode {
  return html`
    <div class="empty">
      <p class="lead">${title}</p>
      ${text && html`<p>${text}</p>`}
      ${command && h(Copyable, { text: command, label: 'Copy the command' })}
      ${action && html`<p>${action}</p>`}
    </div>
  `
}

export type Tone = 'good' | 'bad' | 'neutral'

/** A short word about the state of something. */
export function Badge({ text, tone = 'neutral' }: { text: string; tone?: Tone }): VNode {
  return html`<span class="badge ${tone}">${text}</span>`
}
