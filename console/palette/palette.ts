import { type Signal, signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { announce } from '../components/announcer.ts'
import { plural } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { type Finding, pagesNamed, thingsNamed } from './findings.ts'

const isOpen = signal(false)
/** Nobody finishes typing an id within this time; whoever pasted one hardly waits. */
const PAUSE_MS = 250
const SHORTEST = 2

export function openPalette(): void {
  isOpen.value = true
}

/** Opens with Ctrl-K or ⌘K from anywhere. */
export function Palette(): VNode | null {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return
      event.preventDefault()
      // On top of another dialog it would hide what that asks.
      if (!document.querySelector('dialog[open]')) openPalette()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
  return isOpen.value ? h(PaletteDialog, {}) : null
}

function PaletteDialog(): VNode {
  const element = useRef<HTMLDialogElement>(null)
  const text = useSignal('')
  const chosen = useSignal(0)
  const { findings, isLooking } = useFindings(text)
  useEffect(() => element.current!.showModal(), [])
  const follow = (finding: Finding | undefined) => {
    if (!finding) return
    element.current!.close()
    go(finding.href)
  }
  const typed = (event: Event) => {
    text.value = (event.currentTarget as HTMLInputElement).value
    chosen.value = 0
  }
  const pressed = (event: KeyboardEvent) => {
    const last = findings.length - 1
    const steps: Record<string, () => void> = {
      ArrowDown: () => choose(chosen, chosen.peek() >= last ? 0 : chosen.peek() + 1),
      ArrowUp: () => choose(chosen, chosen.peek() <= 0 ? last : chosen.peek() - 1),
      Enter: () => follow(findings[chosen.peek()]),
    }
    const step = steps[event.key]
    if (!step) return
    event.preventDefault()
    step()
  }
  const current = findings.length > 0 ? `finding-${Math.min(chosen.value, findings.length - 1)}` : null
  return html`
    <dialog ref=${element} class="palette" aria-label="Go to" onClose=${() => (isOpen.value = false)}>
      <input
        id="palette" type="text" role="combobox" aria-label="Page, record, event or person"
        aria-expanded="true" aria-controls="findings" aria-autocomplete="list" aria-activedescendant=${current}
        placeholder="Page, id or e-mail …" autocomplete="off" spellcheck="false"
        onInput=${typed} onKeyDown=${pressed}
      />
      <ul id="findings" role="listbox" aria-label="Results">
        ${findings.map((finding, index) => optionOf(finding, index, { current, follow }))}
      </ul>
      <p class="faint">${hintFor(text.value, findings.length, isLooking)}</p>
    </dialog>
  `
}

function choose(chosen: Signal<number>, index: number): void {
  chosen.value = index
  requestAnimationFrame(() =>
    document.getElementById(`finding-${index}`)?.scrollIntoView({ block: 'nearest' }),
  )
}

type OptionContext = { current: string | null; follow(finding: Finding): void }

function optionOf(finding: Finding, index: number, { current, follow }: OptionContext): VNode {
  const id = `finding-${index}`
  return html`
    <li
      key=${finding.href + finding.kind} id=${id} role="option" aria-selected=${String(id === current)}
      onClick=${() => follow(finding)}
    >
      <span>${finding.title}</span>
      <span class="faint">${[finding.note, finding.kind].filter(Boolean).join(' · ')}</span>
    </li>
  `
}

function hintFor(text: string, found: number, isLooking: boolean): string {
  if (isLooking) return 'Searching …'
  if (found > 0) return '↑ ↓ to select, Enter to open, Esc to close'
  return `No results for ${text}. Enter an exact id, the beginning of a name or e-mail address, or part of a page title.`
}

/** Pages at once; things as soon as nobody types any more. */
function useFindings(text: Signal<string>): { findings: Finding[]; isLooking: boolean } {
  const things = useSignal<{ of: string; list: Finding[] }>({ of: '', list: [] })
  const wanted = text.value.trim()
  useEffect(() => {
    if (wanted.length < SHORTEST) return
    const left = new AbortController()
    const timer = setTimeout(async () => {
      const list = distinct(await thingsNamed(wanted, left.signal))
      if (left.signal.aborted) return
      things.value = { of: wanted, list }
      announce(`${plural(list.length + pagesNamed(wanted).length, 'result')}`)
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      left.abort()
    }
  }, [wanted])
  const isKnown = things.value.of === wanted
  const list = isKnown ? things.value.list : []
  return { findings: [...list, ...pagesNamed(wanted)], isLooking: wanted.length >= SHORTEST && !isKnown }
}

function distinct(list: Finding[]): Finding[] {
  return [...new Map(list.map(finding => [finding.href, finding])).values()]
}
