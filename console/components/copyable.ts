import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { html } from '../html.ts'
import { announce } from './announcer.ts'

const SHOWN_MS = 2_000

/** Text to take along, with a button for it. */
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

/** Browsers lend the clipboard to secure pages only; elsewhere the text is selected. */
async function copied(text: string, element: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    getSelection()?.selectAllChildren(element)
    return false
  }
}
