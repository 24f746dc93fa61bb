import { h } from '../dom.js'

/** Asks before something that cannot be undone; resolves with true or false. */
export function confirmed({ title, text, yes }) {
  return new Promise(resolve => {
    const dialog = h(
      'dialog',
      { 'aria-labelledby': 'dialog-title' },
      h('form', { method: 'dialog' }, [
        h('h2', { id: 'dialog-title' }, title),
        h('p', {}, text),
        h('div', { class: 'actions' }, [
          h('button', { value: 'no', class: 'quiet' }, 'Cancel'),
          h('button', { value: 'yes', class: 'main' }, yes),
        ]),
      ]),
    )
    open(dialog, () => resolve(dialog.returnValue === 'yes'))
  })
}

/** Shows something on top of the page until it is closed. */
export function showDialog(title, ...content) {
  const close = h('form', { method: 'dialog' }, h('button', {}, 'Close'))
  const heading = h('h2', { id: 'dialog-title' }, title)
  open(h('dialog', { 'aria-labelledby': 'dialog-title', class: 'wide' }, heading, content, close))
}

function open(dialog, closed = () => {}) {
  dialog.addEventListener('close', () => {
    dialog.remove()
    closed()
  })
  document.body.append(dialog)
  dialog.showModal()
}
