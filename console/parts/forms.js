import { h } from '../dom.js'
import { problemBox } from './notices.js'

/** A labelled field: field('Name', h('input', { id: 'name' })). */
export function field(label, control, hint) {
  const hintId = hint && `${control.id}-hint`
  if (hintId) control.setAttribute('aria-describedby', hintId)
  control.setAttribute('name', control.id)
  return h('div', { class: 'field' }, [
    h('label', { for: control.id }, label),
    control,
    hint && h('p', { class: 'hint', id: hintId }, hint),
  ])
}

/** choice('type', [['a', 'A']], 'a') */
export function choice(id, options, value = options[0]?.[0]) {
  return h(
    'select',
    { id, value },
    options.map(([name, label]) => h('option', { value: name }, label)),
  )
}

/** A form that works while it waits and tells what went wrong. `run(values, form)` does the work. */
export function form({ submit, run, class: kind = '' }, ...fields) {
  const trouble = h('div', { class: 'aside' })
  const button = h('button', { type: 'submit', class: 'main' }, submit)
  const element = h(
    'form',
    { class: kind, novalidate: true },
    fields,
    h('div', { class: 'field end' }, button),
    trouble,
  )
  element.addEventListener('submit', event => {
    event.preventDefault()
    whileBusy(button, trouble, () => run(Object.fromEntries(new FormData(element)), element))
  })
  return element
}

/** A button whose work takes a while; `trouble` is where its problem is shown. */
export function action(label, run, { trouble = h('div', {}), class: kind = '', id } = {}) {
  const button = h('button', { type: 'button', class: kind, id }, label)
  button.addEventListener('click', () => whileBusy(button, trouble, run))
  return button
}

/** Once at a time. The button is not disabled, because that would take the focus away from it. */
export async function whileBusy(button, trouble, run) {
  if (button.getAttribute('aria-busy') === 'true') return
  button.setAttribute('aria-busy', 'true')
  trouble.replaceChildren()
  try {
    await run()
  } catch (error) {
    trouble.replaceChildren(problemBox(error))
  } finally {
    button.removeAttribute('aria-busy')
  }
}

/** What a local date and time of an input is as an instant, and back. */
export function toInstant(local) {
  return local ? new Date(local).toISOString() : ''
}

export function toLocal(iso) {
  const at = new Date(iso ?? '')
  if (Number.isNaN(at.getTime())) return ''
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}
