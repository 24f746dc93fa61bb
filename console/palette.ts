import { type Signal, signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { destinations, sources } from './api/admin.ts'
import { search } from './api/data.ts'
import type { Found } from './api/types.ts'
import { announce } from './components/announcer.ts'
import { plural } from './format.ts'
import { h, html } from './html.ts'
import { ADMINISTRATION, DATA } from './menu.ts'
import { go } from './navigation.ts'
import { link } from './router.ts'
import { isAdmin, tenant } from './session.ts'

const isOpen = signal(false)
/** Delay before searching: longer than between two keys, and short after a paste. */
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
      // It must not cover another dialog.
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
        ${findings.map((finding, index) => paletteOption(finding, index, { current, follow }))}
      </ul>
      <p class="faint">${paletteHint(text.value, findings.length, isLooking)}</p>
    </dialog>
  `
}

function choose(chosen: Signal<number>, index: number): void {
  chosen.value = index
  requestAnimationFrame(() => document.getElementById(`finding-${index}`)?.scrollIntoView({ block: 'nearest' }))
}

type OptionContext = { current: string | null; follow(finding: Finding): void }

function paletteOption(finding: Finding, index: number, { current, follow }: OptionContext): VNode {
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

function paletteHint(text: string, found: number, isLooking: boolean): string {
  if (isLooking) return 'Searching …'
  if (found > 0) return '↑ ↓ to select, Enter to open, Esc to close'
  return `No results for ${text}. Enter an exact id, the beginning of a name or e-mail address, or part of a page title.`
}

/** Pages are found at once, objects after a pause in typing. */
function useFindings(text: Signal<string>): { findings: Finding[]; isLooking: boolean } {
  const things = useSignal<{ of: string; list: Finding[] }>({ of: '', list: [] })
  const wanted = text.value.trim()
  useEffect(() => {
    if (wanted.length < SHORTEST) return
    const left = new AbortController()
    const timer = setTimeout(async () => {
      const list = distinct(await findObjects(wanted, left.signal))
      if (left.signal.aborted) return
      things.value = { of: wanted, list }
      announce(`${plural(list.length + findPages(wanted).length, 'result')}`)
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      left.abort()
    }
  }, [wanted])
  const isKnown = things.value.of === wanted
  const list = isKnown ? things.value.list : []
  return { findings: [...list, ...findPages(wanted)], isLooking: wanted.length >= SHORTEST && !isKnown }
}

function distinct(list: Finding[]): Finding[] {
  return [...new Map(list.map(finding => [finding.href, finding])).values()]
}

/** A search result with its address. */
type Finding = { kind: string; title: string; note: string; href: string }

const MORE_PAGES = [
  { title: 'Contacts', href: link('records', { type: 'contacts' }) },
  { title: 'Orders', href: link('records', { type: 'orders' }) },
  { title: 'Products', href: link('records', { type: 'products' }) },
  { title: 'Needs attention: payment issues, renewals, cancellations', href: link('attention') },
  { title: 'Movements: MRR changes by month and account', href: link('movements') },
  { title: 'MRR by source', href: link('acquisition') },
  { title: 'Cohorts and retention', href: link('cohorts') },
  { title: 'Items excluded from MRR', href: link('excluded') },
  { title: 'Event lookup', href: link('eventLookup') },
]
const ADMIN_PAGES = [
  { title: 'New source', href: link('newSource') },
  { title: 'New destination', href: link('newDestination') },
  { title: 'Connect Stripe', href: link('connect', { sender: 'stripe' }) },
  { title: 'Connect Shopify', href: link('connect', { sender: 'shopify' }) },
]

/** Pages whose title contains all the words; needs no request. */
function findPages(text: string): Finding[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const all = [
    ...DATA,
    ...MORE_PAGES,
    ...(isAdmin.peek() ? [...ADMINISTRATION.flatMap(({ items }) => items), ...ADMIN_PAGES] : []),
  ]
  return all
    .filter(({ title }) => words.every(word => title.toLowerCase().includes(word)))
    .map(({ title, href }) => ({ kind: 'Page', title, note: '', href }))
}

/** Records, events, people, sources and destinations with this id or name. Skips what cannot be read. */
async function findObjects(text: string, signal: AbortSignal): Promise<Finding[]> {
  const found = await Promise.allSettled([
    search(text, signal).then(({ results }) => results.flatMap(toFindings)),
    ...(isAdmin.peek() ? [findConfigured(text, signal)] : []),
  ])
  return found.flatMap(result => (result.status === 'fulfilled' ? result.value : []))
}

function toFindings({ kind, id, title, note: given }: Found): Finding[] {
  const note = given ?? ''
  switch (kind) {
    case 'person':
      return isAdmin.peek() ? [{ kind: 'Person', title, note, href: link('person', { id }) }] : []
    case 'event':
      return [{ kind: 'Event', title, note, href: link('event', { id }) }]
    case 'contact': {
      const account = { kind: 'Account', title, note, href: link('account', { customer: id }) }
      return [{ kind: 'Contact', title, note, href: link('record', { type: 'contacts', id }) }, account]
    }
    default: {
      const href = link('record', { type: `${kind}s`, id })
      return [{ kind: kind === 'order' ? 'Order' : 'Product', title, note, href }]
    }
  }
}

async function findConfigured(text: string, signal: AbortSignal): Promise<Finding[]> {
  const wanted = text.toLowerCase()
  const isNamed = ({ id, name }: { id: string; name: string }) => id === text || name.toLowerCase().includes(wanted)
  const id = tenant.peek() ?? ''
  const [from, to] = await Promise.all([sources.list(id, signal), destinations.list(id, signal)])
  return [
    ...from.results.filter(isNamed).map(source => ({
      ...{ kind: 'Source', title: source.name, note: source.id, href: link('source', { id: source.id }) },
    })),
    ...to.results.filter(isNamed).map(destination => ({
      ...{ kind: 'Destination', title: destination.name, note: destination.url },
      href: link('destination', { id: destination.id }),
    })),
  ]
}
