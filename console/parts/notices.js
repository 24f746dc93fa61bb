import { h } from '../dom.js'
import { copyable } from './copyable.js'

/** What went wrong, in the words of the server, with the id that its log knows it by. */
export function problemBox(error, { retry } = {}) {
  const { title, requestId, status, errors = [] } = error
  const mayPass = !(status >= 400 && status < 500)
  return h('div', { class: 'problem', role: 'alert' }, [
    h('p', {}, title && h('strong', {}, `${title}. `), error.message),
    errors.length > 1 &&
      h(
        'ul',
        {},
        errors.map(({ pointer, message }) => h('li', {}, h('code', {}, pointer || 'body'), ` ${message}`)),
      ),
    requestId && h('p', { class: 'faint' }, 'Request ', h('code', {}, requestId)),
    retry && mayPass && h('button', { type: 'button', onclick: retry }, 'Try again'),
  ])
}

/** A list without rows says how to get some. */
export function emptyState({ title, text, curl, action }) {
  return h('div', { class: 'empty' }, [
    h('p', { class: 'lead' }, title),
    text && h('p', {}, text),
    curl && copyable(curl, 'Copy the command'),
    action && h('p', {}, action),
  ])
}

/** A short word about the state of something: `tone` is good, bad, or nothing. */
export function badge(text, tone = '') {
  return h('span', { class: `badge ${tone}` }, text)
}
