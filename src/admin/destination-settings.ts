import { Type } from 'typebox'
import { WHATS, type What } from '../domain/destinations/destinations.ts'
import { MAX_EVENT_TYPE_LENGTH } from '../domain/events/events.ts'

// What the sender writes itself, or what would change how a request is read.
const OWN_HEADER =
  /^(webhook-.*|host|content-length|content-type|content-encoding|transfer-encoding|connection|expect|upgrade|te|trailer|keep-alive)$/i
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/i
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,2000}$/

/** What can be set on a destination. The admin API's schemas and the checks of admin are made of the same parts. */
export const DESTINATION_FIELDS = {
  name: { schema: Type.String({ minLength: 1, maxLength: 100 }), expects: 'a name of 1 to 100 characters' },
  url: {
    schema: Type.String({ minLength: 1, maxLength: 2_000 }),
    expects: 'an address like https://example.com/hooks',
  },
  what: {
    schema: Type.Array(Type.Enum([...WHATS]), { minItems: 1, maxItems: WHATS.length, uniqueItems: true }),
    expects: `a list of ${WHATS.join(', ')}; one at least`,
  },
  event_types: {
    schema: Type.Array(Type.String({ minLength: 1, maxLength: MAX_EVENT_TYPE_LENGTH + 1 }), {
      maxItems: 100,
    }),
    expects: 'a list of up to 100 event types, exact (page_view) or by their beginning (order.*); none: all',
    check: (types: string[]) => types.every(type => !type.slice(0, -1).includes('*')),
  },
  enabled: { schema: Type.Boolean(), expects: 'true or false' },
  headers: {
    schema: Type.Record(Type.String(), Type.String(), { maxProperties: 50 }),
    expects:
      'an object of up to 50 header names and values of one line, without host, webhook-*, content-* and those of the connection',
    check: (headers: Record<string, string>) =>
      Object.entries(headers).every(
        ([name, value]) => HEADER_NAME.test(name) && !OWN_HEADER.test(name) && HEADER_VALUE.test(value),
      ),
  },
}

export type DestinationSettings = {
  name?: string
  url?: string
  what?: What[]
  event_types?: string[]
  enabled?: boolean
  headers?: Record<string, string>
}

/** The settings as parts of a documented shape. */
export const DESTINATION_SETTINGS = {
  name: DESTINATION_FIELDS.name.schema,
  url: Type.String({
    ...DESTINATION_FIELDS.url.schema,
    description: 'https; private networks are refused unless KONTOR_ALLOW_PRIVATE_DESTINATIONS=true',
  }),
  what: DESTINATION_FIELDS.what.schema,
  event_types: Type.Array(Type.String(), {
    description: 'Of events: exact types, or their beginning and *; none: all',
  }),
  enabled: DESTINATION_FIELDS.enabled.schema,
  headers: Type.Record(Type.String(), Type.String(), {
    description: 'Sent along. Values of what looks like a credential are shown as …',
  }),
}
