import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import type { Role } from '../api/types.ts'
import { h, html } from '../html.ts'
import { hasRole } from '../session.ts'
import { ProblemArea } from './notice.ts'

/** Runs one action at a time and puts its error into `problem`. */
function useAction(problem: Signal<unknown>) {
  const isBusy = useSignal(false)
  const start = async (work: () => unknown) => {
    if (isBusy.value) return
    isBusy.value = true
    problem.value = null
    try {
      await work()
    } catch (error) {
      problem.value = error
    } finally {
      isBusy.value = false
    }
  }
  return { isBusy, start }
}

type ButtonKind = 'main' | 'quiet' | 'link' | ''

type ActionButtonProps = {
  label: string
  run(): unknown
  /** Receives the error. Buttons of one page share a ProblemArea. */
  problem: Signal<unknown>
  kind?: ButtonKind
  /** The role that the action requires. Without it there is no button. */
  needs?: Role
}

/** A button with an asynchronous action. It stays enabled while busy, because disabling would remove the focus. */
export function ActionButton({ label, run, problem, kind = '', needs = 'viewer' }: ActionButtonProps): VNode | null {
  const { isBusy, start } = useAction(problem)
  if (!hasRole(needs)) return null
  return html`
    <button type="button" class=${kind} aria-busy=${isBusy.value ? 'true' : null} onClick=${() => start(run)}>
      ${label}
    </button>
  `
}

export function RefreshButton({ refresh }: { refresh(): Promise<void> }): VNode {
  const problem = useSignal<unknown>(null)
  return html`${h(ActionButton, { label: 'Refresh', run: refresh, problem })}${h(ProblemArea, { problem })}`
}

/** The values by the name of the control. */
export type FormValues<Name extends string> = Record<Name, string>

type FormProps<Name extends string> = {
  submit: string
  layout: 'filter' | 'stacked'
  run(values: FormValues<Name>, all: FormData): unknown
  /** Shown beside the button. */
  aside?: ComponentChildren
  /** For actions that cannot be undone: the button is red and disabled until this returns true. */
  isConfirmed?(values: FormValues<Name>): boolean
  /** The role that submitting requires. */
  needs?: Role
  children?: ComponentChildren
}

/** A form that shows its progress and its errors. */
export function Form<Name extends string>(props: FormProps<Name>): VNode {
  const { submit, layout, run, aside, isConfirmed, needs = 'viewer', children } = props
  const problem = useSignal<unknown>(null)
  const isReady = useSignal(isConfirmed === undefined)
  const { isBusy, start } = useAction(problem)
  const onInput = (event: InputEvent) => {
    const all = new FormData(event.currentTarget as HTMLFormElement)
    if (isConfirmed) isReady.value = isConfirmed(Object.fromEntries(all) as FormValues<Name>)
  }
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    const all = new FormData(event.currentTarget as HTMLFormElement)
    start(() => run(Object.fromEntries(all) as FormValues<Name>, all))
  }
  return html`
    <form class=${layout} novalidate onSubmit=${onSubmit} onInput=${onInput}>
      ${children}
      <div class="field end">
        <button
          type="submit" class=${isConfirmed ? 'main final' : 'main'} disabled=${!isReady.value || !hasRole(needs)}
          aria-busy=${isBusy.value ? 'true' : null}
        >${submit}</button>
        ${aside}
        ${!hasRole(needs) && html`<span class="faint">Requires the role ${needs}.</span>`}
      </div>
      ${h(ProblemArea, { problem })}
    </form>
  `
}

type FieldProps = { id: string; label: string; hint?: ComponentChildren }

type TextFieldProps = FieldProps & {
  value?: string
  type?: 'text' | 'password' | 'date' | 'datetime-local'
  placeholder?: string
  /** The id of a datalist. */
  list?: string
  size?: number
  autofocus?: boolean
  /** For password managers. */
  autocomplete?: 'username' | 'current-password' | 'new-password'
}

export function TextField({ id, label, hint, value = '', type = 'text', ...more }: TextFieldProps): VNode {
  const control = html`
    <input
      id=${id} name=${id} type=${type} defaultValue=${value} autocomplete="off" spellcheck="false"
      aria-describedby=${hint ? hintId(id) : null} ...${more}
    />
  `
  return h(Field, { id, label, hint }, control)
}

type TextAreaProps = FieldProps & { value: string; rows: number }

export function TextArea({ id, label, hint, value, rows }: TextAreaProps): VNode {
  const control = html`
    <textarea
      id=${id} name=${id} rows=${rows} spellcheck="false" defaultValue=${value}
      aria-describedby=${hint ? hintId(id) : null}
    />
  `
  return h(Field, { id, label, hint }, control)
}

type Option = readonly [value: string, label: string]

type SelectFieldProps = FieldProps & {
  options: readonly Option[]
  value?: string
  onChange?(value: string): void
}

export function SelectField({ id, label, hint, options, value, onChange }: SelectFieldProps): VNode {
  const chosen = value ?? options[0]?.[0]
  const changed = (event: Event) => onChange?.((event.currentTarget as HTMLSelectElement).value)
  const control = html`
    <select id=${id} name=${id} onChange=${changed} aria-describedby=${hint ? hintId(id) : null}>
      ${options.map(([name, shown]) => html`<option value=${name} selected=${name === chosen}>${shown}</option>`)}
    </select>
  `
  return h(Field, { id, label, hint }, control)
}

/** A filter that applies immediately. */
export function SelectFilter(props: SelectFieldProps): VNode {
  return html`<div class="filter">${h(SelectField, props)}</div>`
}

function Field({ id, label, hint, children }: FieldProps & { children?: ComponentChildren }): VNode {
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${children}
      ${hint && html`<p class="hint" id=${hintId(id)}>${hint}</p>`}
    </div>
  `
}

const hintId = (id: string) => `${id}-hint`
