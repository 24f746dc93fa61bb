import assert from 'node:assert/strict'
import { normalize } from '../../../src/domain/events/normalize/normalize.ts'
import type {
  CdpContext,
  EventContext,
  InboundContext,
  Normalized,
  NormalizedEvent,
} from '../../../src/domain/events/types.ts'

export const RECEIVED_AT = new Date('2025-01-01T12:00:00Z')
export const ENTRY_ID = '01941f29-7c00-7abc-8def-012345600000'

export const trackContext: EventContext = { route: 'track', ip: null, headers: {} }

export const cdpContext = (kind: CdpContext['kind'] = 'any'): EventContext => ({
  route: 'cdp',
  kind,
  ip: null,
  headers: {},
})

export const inboundContext = (settings: Partial<InboundContext> = {}): InboundContext => ({
  route: 'inbound',
  ip: null,
  headers: {},
  sourceId: 'src_1',
  sourceType: 'webhook',
  preset: null,
  eventTypeOverride: null,
  eventIdPath: null,
  signature: null,
  ...settings,
})

/** `body`: JSON text, or a value to serialize. */
export function received(body: unknown, context: EventContext): Normalized {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return normalize({ entryId: ENTRY_ID, receivedAt: RECEIVED_AT, body: text, context })
}

function only({ events, rejected }: Normalized): NormalizedEvent {
  assert.deepEqual(rejected, [])
  assert.equal(events.length, 1)
  return events[0]!
}

export const trackEvent = (body: unknown) => only(received(body, trackContext))
export const cdpEvent = (body: unknown, kind?: CdpContext['kind']) => only(received(body, cdpContext(kind)))
export const inboundEvent = (body: unknown, settings?: Partial<InboundContext>) =>
  only(received(body, inboundContext(settings)))
