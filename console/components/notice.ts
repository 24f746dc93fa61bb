import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { type Fault, Problem } from '../api/request.ts'
import { h, html } from '../html.ts'
import { Copyable } from './copyable.ts'

/** What went wrong, in the words of the server, with the id that its log knows it by. */
export function ProblemNotice({ error, retry }: { error: unknown; retry?: () => unknown }): VNode {
  const problem = error instanceof Problem ? error : null
  const mayPass = problem === null || problem.status === 0 || problem.status >= 500
  const faults = problem?.errors.map(faultWords) ?? []
  return html`
    <div class="problem" role="alert">
      <p>
        ${problem && html`<strong>${problem.title}. </strong>`}
        ${problem ? leadOf(problem, faults) : error instanceof Error ? error.message : String(error)}
      </p>
      ${
        (faults.length > 1 ||
          problem?.errors.some(({ message }) => !leadOf(problem, faults).includes(message))) &&
        html`<ul>${faults.map(fault => html`<li>${fault}</li>`)}</ul>`
      }
      ${problem?.requestId && html`<p class="faint">Request <code>${problem.requestId}</code></p>`}
      ${retry && mayPass && html`<button type="button" onClick=${retry}>Try again</button>`}
    </div>
  `
}

/** Says no more than how many faults there are, or the only one in the words of JSON. */
const COUNTS = /^(One value is|\d+ values are) not valid\.$|; errors lists /

function leadOf({ message, errors }: Problem, faults: string[]): string {
  const isTold = errors.length === 1 && message.includes(errors[0]!.message)
  if (errors.length === 0 || !(isTold || COUNTS.test(message))) return message
  return errors.length === 1 ? `${faults[0]}.` : `${errors.length} values are not valid:`
}

/** batch/0/name is required; many messages name the field themselves. */
function faultWords({ pointer, message }: Fault): string {
  const field = pointer.slice(pointer.lastIndexOf('/') + 1)
  if (field !== '' && message.startsWith(`${field} `)) return message
  if (pointer === '') return /^(an?|the) /.test(message) ? message : `What was sent ${message}`
  return `${pointer.slice(1)} ${message}`
}

/** The place where a page shows what went wrong with its actions; nothing while all is well. */
export function ProblemArea({ problem }: { problem: ReadonlySignal<unknown> }): VNode | null {
  return problem.value === null ? null : h(ProblemNotice, { error: problem.value })
}

/** What became of an action; bad where it did not do what one hoped for. */
export type Outcome = { text: string; isBad: boolean }

export function OutcomeArea({ outcome }: { outcome: ReadonlySignal<Outcome | null> }): VNode | null {
  const shown = outcome.value
  return shown && html`<p class=${shown.isBad ? 'notice bad' : 'notice'}>${shown.text}</p>`
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
