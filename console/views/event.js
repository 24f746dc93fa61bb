import { data } from '../api.js'
import { h } from '../dom.js'
import { text, time } from '../format.js'
import { badge, emptyState } from '../parts/notices.js'
import { facts, json, page, section } from '../parts/page.js'
import { link } from '../routes.js'
import { session } from '../session.js'
import { lookupForm } from './events.js'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const MEANINGS = {
  queued: 'Accepted, and waits to be applied.',
  deferred: 'Accepted, and waits until its source has budget again.',
  stored: 'Accepted and applied.',
  duplicate: 'Another event with its id came first; this one changed nothing.',
  dead_letter: 'It could not be taken.',
  dropped: 'Over the limit of its source, which drops what is too much.',
}

/** One event: by its id here (#/events/ID), or by whatever id one has (#/events/lookup?id=…&source=…). */
export async function view({ parts, query, signal }) {
  const isLookup = parts[1] === 'lookup'
  const id = isLookup ? (query.get('id') ?? '') : parts[1]
  const source = query.get('source') ?? ''
  const outcome = id === '' ? null : await findOutcome(id, source, signal)
  return page(
    outcome?.event?.event_type ?? 'What happened to an event',
    {},
    isLookup && lookupForm(id, source),
    outcome ? shown(outcome) : id !== '' && unknown(id),
  )
}

async function findOutcome(id, source_config_id, signal) {
  const quiet = error => {
    if (error.status !== 404) throw error
    return null
  }
  if (UUID.test(id) && !source_config_id) {
    const found = await data(`/events/${id}`, { signal }).catch(quiet)
    if (found) return found
  }
  return data('/events/lookup', { query: { event_id: id, source_config_id }, signal }).catch(quiet)
}

function shown(outcome) {
  const { event, status, id } = outcome
  const other = (label, target) =>
    target && [label, h('a', { href: link(['events', target]) }, h('code', {}, target))]
  return [
    facts([
      ['Status', [badge(status.replace('_', ' '), toneOf(status)), ' ', MEANINGS[status]]],
      outcome.reason && ['Reason', outcome.reason],
      ['Id', h('code', {}, id)],
      ['Received', time(outcome.received_at)],
      event && ['Occurred', time(event.occurred_at)],
      outcome.conversion && ['Counts as', h('a', { href: link(['conversions']) }, 'a conversion')],
      outcome.attempts !== null && ['Attempts', String(outcome.attempts)],
      outcome.next_attempt_at && ['Next attempt', time(outcome.next_attempt_at)],
      outcome.failed_at && ['Given up', time(outcome.failed_at)],
      other('The first one', outcome.duplicate_of),
      outcome.replayed_at && ['Replayed', time(outcome.replayed_at)],
      other('Replayed as', outcome.replayed_as),
      status === 'dead_letter' &&
        session.adminKey && [
          'Dead letter',
          h('a', { href: link(['dead-letters', id]) }, 'See its body, replay it'),
        ],
    ]),
    event && details(event),
  ]
}

function details(event) {
  return [
    section(
      'Who and from where',
      facts([
        ['From', event.source_type],
        event.source_config_id && ['Source', sourceLink(event.source_config_id)],
        ["Sender's id", text(event.inbound_event_id)],
        event.provider_event_id && ["Provider's id", event.provider_event_id],
        ['Visitor', text(event.visitor)],
        ['Session', text(event.session_id)],
        ['Profile', text(event.profile_id)],
        [
          'Contact',
          event.contact_id
            ? h('a', { href: link(['records', 'contacts', event.contact_id]) }, event.contact_id)
            : text(null),
        ],
      ]),
    ),
    section('Payload', json(event.payload, 'Payload')),
    section('Headers and meta', json({ headers: event.headers, meta: event.meta }, 'Headers and meta')),
  ]
}

function sourceLink(id) {
  return session.adminKey ? h('a', { href: link(['sources', id]) }, id) : id
}

function unknown(id) {
  return emptyState({
    title: 'Nothing is known of this event.',
    text: ['No event has the id ', h('code', {}, id), '. It was never accepted, or has expired.'],
    action: h('a', { href: link(['events']) }, 'All events'),
  })
}

function toneOf(status) {
  return { stored: 'good', dead_letter: 'bad', dropped: 'bad' }[status] ?? ''
}
