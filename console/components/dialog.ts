import { signal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { h, html } from '../html.ts'

type OpenDialog = { title: string; content: ComponentChildren; isWide: boolean; closed(answer: string): void }

const openDialog = signal<OpenDialog | null>(null)

/** Asks for confirmation; resolves with true or false. */
export function askConfirmation({ title, text, yes }: { title: string; text: string; yes: string }) {
  const content = html`
    <p>${text}</p>
    <div class="actions">
      <button value="no" class="quiet">Cancel</button>
      <button value="yes" class="main">${yes}</button>
    </div>
  `
  return new Promise<boolean>(resolve => {
    openDialog.value = { title, content, isWide: false, closed: answer => resolve(answer === 'yes') }
  })
}

export function showDialog(title: string, content: ComponentChildren): void {
  const closable = [content, html`<button value="no">Close</button>`]
  openDialog.value = { title, content: closable, isWide: true, closed: () => {} }
}

/** Renders the open dialog; used once in the app. */
export function DialogHost(): VNode | null {
  const dialog = openDialog.value
  return dialog && h(ModalDialog, { dialog })
}

function ModalDialog({ dialog }: { dialog: OpenDialog }): VNode {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const opened = element.current!
    opened.showModal()
    // A link in the dialog leaves the page, so the dialog closes.
    const left = () => opened.close('')
    addEventListener('hashchange', left)
    return () => removeEventListener('hashchange', left)
  }, [])
  const closed = () => {
    openDialog.value = null
    dialog.closed(element.current!.returnValue)
  }
  return html`
    <dialog ref=${element} aria-labelledby="dialog-title" class=${dialog.isWide ? 'wide' : ''} onClose=${closed}>
      <form method="dialog">
        <h2 id="dialog-title">${dialog.title}</h2>
        ${dialog.content}
      </form>
    </dialog>
  `
}
