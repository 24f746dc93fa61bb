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
  element.addEventListener('submit', async event => {
    event.preventDefault()
    button.disabled = true
    trouble.replaceChildren()
    try {
      await run(Object.fromEntries(new FormData(element)), element)
    } catch (error) {
      trouble.replaceChildren(problemBox(error))
    }
    button.disabled = false
  })
  return element
}

/** A button whose work takes a while; `trouble` is where its problem is shown. */
export function action(label, run, { trouble, class: kind = '', id } = {}) {
  const button = h('button', { type: 'button', class: kind, id }, label)
  button.addEventListener('click', async () => {
    button.disabled = true
    trouble?.replaceChildren()
    try {
      await run()
    } catch (error) {
      if (trouble) trouble.replaceChildren(problemBox(error))
      else throw error
    }
    button.disabled = false
  })
  return button
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
