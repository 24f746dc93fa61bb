import type { ComponentChildren, VNode } from 'preact'
import type { Event, EventOutcome, EventStatus } from '../../api/types.ts'
import { Badge, EmptyState, type Tone } from '../../components/notice.ts'
import { type Fact, Facts, Section } from '../../components/page.ts'
import { Time } from '../../components/time.ts'
import { lowerWords, NONE, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { isAdmin } from '../../session.ts'
import { RawAndNormalized, ToldAndSent, type Way, WaySteps } from './way.ts'

const STATUS: Record<EventStatus, { meaning: string; tone: Tone }> = {
  queued: { meaning: 'Accepted and waiting to be applied.', tone: 'neutral' },
  deferred: { meaning: 'Accepted and deferred until its source is below its rate limit.', tone: 'neutral' },
  stored: { meaning: 'Accepted and applied.', tone: 'good' },
  duplicate: {
    meaning: 'An event with the same id was received earlier. This one has no effect.',
    tone: 'neutral',
  },
  dead_letter: { meaning: 'It could not be processed.', tone: 'bad' },
  dropped: { meaning: 'Dropped because its source was over its rate limit.', tone: 'bad' },
  suppressed: {
    meaning: 'About a person who is not tracked. Nothing was stored.',
    tone: 'neutral',
  },
}

/** What became of an event, and what it says. */
export function Outcome({ outcome, way }: { outcome: EventOutcome; way: Way | null }): VNode {
  const { event, status, id } = outcome
  const { meaning, tone } = STATUS[status]
  return html`
    ${h(WaySteps, { outcome, way })}
    ${h(Facts, {
      facts: [
        ['Status', html`${h(Badge, { text: lowerWords(status), tone })} ${meaning}`],
        outcome.reason && ['Reason', outcome.reason],
        ['Id', html`<code>${id}</code>`],
        ['Received', h(Time, { at: outcome.received_at })],
        event && ['Occurred', h(Time, { at: event.occurred_at })],
        outcome.conversion && ['Counts as', html`<a href=${link('conversions')}>a conversion</a>`],
        outcome.attempts !== null && ['Attempts', String(outcome.attempts)],
        outcome.next_attempt_at && ['Next attempt', h(Time, { at: outcome.next_attempt_at })],
        outcome.failed_at && ['Failed', h(Time, { at: outcome.failed_at })],
        eventFact('First event', outcome.duplicate_of),
        outcome.replayed_at && ['Replayed', h(Time, { at: outcome.replayed_at })],
        eventFact('Replayed as', outcome.replayed_as),
        status === 'dead_letter' &&
          isAdmin.value && [
            'Dead letter',
            html`<a href=${link('deadLetter', { id })}>View body and replay</a>`,
          ],
      ],
    })}
    ${event && h(Details, { event })}
    ${h(ToldAndSent, { outcome, way })}
    ${h(RawAndNormalized, { outcome, way })}
  `
}

function eventFact(label: string, id: string | null): Fact | null {
  return id === null ? null : [label, html`<a href=${link('event', { id })}><code>${id}</code></a>`]
}

function Details({ event }: { event: Event }): VNode {
  return html`
    ${h(
      Section,
      { title: 'Person and source' },
      h(Facts, {
        facts: [
          ['Source type', event.source_type],
          event.source_config_id && ['Source', sourceLink(event.source_config_id)],
          ["Sender's id", text(event.inbound_event_id)],
          event.provider_event_id && ["Provider's id", event.provider_event_id],
          ['Visitor', text(event.visitor)],
          ['Session', text(event.session_id)],
          ['Profile', profileLink(event.profile_id)],
          ['Contact', contactLink(event.contact_id)],
        ],
      }),
    )}
  `
}

function sourceLink(id: string): ComponentChildren {
  return isAdmin.value ? html`<a href=${link('source', { id })}>${id}</a>` : id
}

function profileLink(id: string | null): ComponentChildren {
  return id !== null && isAdmin.value ? html`<a href=${link('person', { id })}>${id}</a>` : text(id)
}

function contactLink(id: string | null): ComponentChildren {
  return id === null ? NONE : html`<a href=${link('record', { type: 'contacts', id })}>${id}</a>`
}

export function UnknownEvent({ id }: { id: string }): VNode {
  return h(EmptyState, {
    title: 'Event not found.',
    text: html`<span>No event has the id <code>${id}</code>. It was never accepted, has expired, or was deleted when a person was erased.</span>`,
    action: html`<a href=${link('events')}>All events</a>`,
  })
}
