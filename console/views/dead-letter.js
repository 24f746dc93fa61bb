import { admin } from '../api.js'
import { h, say } from '../dom.js'
import { text, time } from '../format.js'
import { action } from '../parts/forms.js'
import { badge } from '../parts/notices.js'
import { facts, page, section } from '../parts/page.js'
import { link } from '../routes.js'

export async function view({ parts, signal, refresh }) {
  const letter = await admin(`/dead-letters/${encodeURIComponent(parts[1])}`, { signal })
  const trouble = h('div', { class: 'aside' })
  const replay = async () => {
    await admin('/dead-letters/replay', { method: 'POST', body: { id: letter.id, tenant: letter.tenant } })
    say('Replayed')
    await refresh()
  }
  return page(
    'Dead letter',
    { actions: [!letter.replayed_at && action('Replay', replay, { trouble, class: 'main' })] },
    trouble,
    facts([
      ['Error', letter.error],
      ['Reason', badge(letter.reason, 'bad')],
      ['Kind', letter.kind],
      ['Id', h('code', {}, letter.id)],
      letter.source_config_id && [
        'Source',
        h('a', { href: link(['sources', letter.source_config_id]) }, letter.source_config_id),
      ],
      ["Sender's id", text(letter.inbound_event_id)],
      ['Attempts', String(letter.attempts)],
      ['Received', time(letter.received_at)],
      ['Given up', time(letter.failed_at)],
      letter.replayed_at && ['Replayed', time(letter.replayed_at)],
      letter.replayed_as && ['Replayed as', replayedAs(letter)],
    ]),
    section(
      'Body, as it came in',
      h('pre', { class: 'json', tabindex: 0, role: 'region', 'aria-label': 'Body' }, pretty(letter.body)),
    ),
    h('p', {}, h('a', { href: link(['dead-letters']) }, 'All dead letters')),
  )
}

function replayedAs({ kind, replayed_as: id }) {
  return kind === 'events' ? h('a', { href: link(['events', id]) }, h('code', {}, id)) : h('code', {}, id)
}

/** Laid out where that changes nothing but blanks. */
function pretty(body) {
  try {
    const value = JSON.parse(body)
    return JSON.stringify(value) === body ? JSON.stringify(value, null, 2) : body
  } catch {
    return body
  }
}
