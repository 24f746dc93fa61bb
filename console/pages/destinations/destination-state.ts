import type { VNode } from 'preact'
import type { Destination } from '../../api/types.ts'
import { Badge, type Tone } from '../../components/notice.ts'
import { h } from '../../html.ts'

const TONES: Record<Destination['health']['status'], Tone> = { ok: 'good', failing: 'bad', disabled: 'bad' }

export function DestinationState({ destination: { health } }: { destination: Destination }): VNode {
  const isNew = health.status === 'ok' && health.last_attempt_at === null
  return h(Badge, isNew ? { text: 'no messages yet' } : { text: health.status, tone: TONES[health.status] })
}

export function whatOf({ what, event_types }: Destination): string {
  const types = event_types.length > 0 ? ` (${event_types.join(', ')})` : ''
  return what.map(name => (name === 'events' ? `events${types}` : name)).join(', ')
}
