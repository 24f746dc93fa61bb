import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Credential } from '../api/types.ts'
import { words } from '../format.ts'
import { h, html } from '../html.ts'
import { announce } from './announcer.ts'
import { Time } from './time.ts'

const SHOWN_MS = 2_000

/** Text with a copy button. */
export function Copyable({ text, label = 'Copy' }: { text: string; label?: string }): VNode {
  const code = useRef<HTMLElement>(null)
  const result = useSignal<'Copied' | 'Selected' | null>(null)
  useEffect(() => {
    if (result.value === null) return
    const timer = setTimeout(() => {
      result.value = null
    }, SHOWN_MS)
    return () => clearTimeout(timer)
  }, [result.value])
  const copy = async () => {
    const isCopied = await copied(text, code.current!)
    result.value = isCopied ? 'Copied' : 'Selected'
    announce(isCopied ? 'Copied' : 'Selected. Copy it with the keyboard.')
  }
  return html`
    <div class="copyable">
      <pre tabindex="0"><code ref=${code}>${text}</code></pre>
      <button type="button" class="quiet" aria-label=${label} onClick=${copy}>${result.value ?? 'Copy'}</button>
    </div>
  `
}

/** Browsers offer the clipboard on secure pages only. Elsewhere the text is selected. */
async function copied(text: string, element: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    getSelection()?.selectAllChildren(element)
    return false
  }
}

/** A name like invoice.payment_failed that may wrap after its dots and dashes. */
export function Breakable({ text }: { text: string }): VNode {
  const parts = text.split(/(?<=[._:/-])(?=\w)/)
  return html`<span>${parts.map((part, index) => (index > 0 ? [html`<wbr />`, part] : part))}</span>`
}

/** A sentence from the server; `backticks` become code. */
export function Prose({ text }: { text: string }): VNode {
  const parts = text.split('`')
  return html`<span>${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}</span>`
}

/** The last four characters of tokens or secrets, and when replaced ones expire. */
export function Credentials({ credentials }: { credentials: Credential[] }): VNode {
  return html`
    <span>
      ${credentials.map(
        ({ hint, expires_at }, index) => html`
          ${index > 0 && ', '}<code>${hint}</code>${expires_at && html` until ${h(Time, { at: expires_at })}`}
        `,
      )}
    </span>
  `
}

/** The names of keys, by id. */
export type Hints = ReadonlyMap<string, string>

/** Every page names a key like this: admin …Fybk */
export function keyName({ name, kind, hint }: { name: string | null; kind: string; hint: string }): string {
  return `${name ?? kind} ${hint}`
}

/** Who did something: a person by name, a key by its name and last characters. */
export function Actor({ actor, hints }: { actor: string; hints: Hints }): VNode {
  const [kind, name] = [actor.slice(0, actor.indexOf(':')), actor.slice(actor.indexOf(':') + 1)]
  if (kind === 'user') return html`<span>${name}</span>`
  if (kind === 'oidc') return html`<span>${name}, <span class="faint">via single sign-on</span></span>`
  if (kind === 'cli') return html`<span>${name}, <span class="faint">via command line</span></span>`
  if (actor.startsWith('key_')) return html`<span title=${actor}>${hints.get(actor) ?? actor}</span>`
  return html`<span>${words(actor)}</span>`
}
