import type { ReadonlySignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Problem } from '../api/request.ts'
import type { ValidationError } from '../api/types.ts'
import { h, html } from '../html.ts'
import { Copyable } from './text.ts'

/** What went wrong, as the server describes it, with the id that finds the request in the server's log. */
export function ProblemNotice({ error, retry }: { error: unknown; retry?: () => unknown }): VNode {
  const problem = error instanceof Problem ? error : null
  const isTemporary = problem === null || problem.status === 0 || problem.status >= 500
  const errors = problem?.errors.map(describeError) ?? []
  return html`
    <div class="problem" role="alert">
      <p>
        ${problem && html`<strong>${problem.title}. </strong>`}
        ${summarize(error, errors)}
      </p>
      ${errors.length > 1 && html`<ul>${errors.map(each => html`<li>${each}</li>`)}</ul>`}
      ${problem?.requestId && html`<p class="faint">Request <code>${problem.requestId}</code></p>`}
      ${retry && isTemporary && html`<button type="button" onClick=${retry}>Try again</button>`}
    </div>
  `
}

/** Validation errors name the field; the server's own summary of them does not add anything. */
function summarize(error: unknown, errors: string[]): string {
  if (errors.length === 1) return `${errors[0]}.`
  if (errors.length > 1) return `${errors.length} validation errors:`
  return error instanceof Error ? error.message : String(error)
}

/** batch/0/name is required; many messages name the field themselves. */
function describeError({ pointer, message }: ValidationError): string {
  const field = pointer.slice(pointer.lastIndexOf('/') + 1)
  if (field !== '' && message.startsWith(`${field} `)) return message
  if (pointer === '') return /^(an?|the) /.test(message) ? message : `The request ${message}`
  return `${pointer.slice(1)} ${message}`
}

/** Where a page shows the problem of its last action. */
export function ProblemArea({ problem }: { problem: ReadonlySignal<unknown> }): VNode | null {
  return problem.value === null ? null : h(ProblemNotice, { error: problem.value })
}

/** The result of an action; `isBad` marks a failure. */
export type Outcome = { text: string; isBad: boolean }

export function OutcomeArea({ outcome }: { outcome: ReadonlySignal<Outcome | null> }): VNode | null {
  const shown = outcome.value
  return shown && html`<p class=${shown.isBad ? 'notice bad' : 'notice'}>${shown.text}</p>`
}

type EmptyStateProps = {
  title: string
  text?: ComponentChildren
  /** A command that creates the first row. */
  command?: string
  action?: ComponentChildren
}

/** Shown in place of an empty list. Says how to create the first row. */
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

export function Badge({ text, tone = 'neutral' }: { text: string; tone?: Tone }): VNode {
  return html`<span class="badge ${tone}">${text}</span>`
}

/** A secret that is shown only once, such as a new key. It takes the focus so that it is not missed. */
export function ShownOnce({ title, children }: { title: string; children?: ComponentChildren }): VNode {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current!.focus(), [])
  return html`<div class="once"><h2 tabindex="-1" ref=${heading}>${title}</h2>${children}</div>`
}

/** Hosts that are not reachable from the internet. A name without a dot is one of them. */
const LOCAL_ADDRESS = /^(127\.|10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|\[)/
const LOCAL_NAME = /\.(localhost|local|internal|lan)$/

function isLocal(host: string): boolean {
  return LOCAL_ADDRESS.test(host) || LOCAL_NAME.test(host) || !host.includes('.')
}

/** Warns that an external sender cannot reach the address of this server. */
export function LocalAddressNote({ sender }: { sender: string }): VNode | null {
  if (!isLocal(location.hostname)) return null
  return html`
    <p class="notice bad">
      ${sender} cannot reach ${location.host}, because that address is known only on this machine or in its network. Use
      the public address of this server (its domain, or a tunnel to it) with the same path. Until then, you can use “Send
      test event” on the page of the source.
    </p>
  `
}
