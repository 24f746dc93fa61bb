import { type Static, Type } from 'typebox'
import { MAX_EVENT_TYPE_LENGTH } from '../events/events.ts'
import { SourceConfig } from '../inbound/source-config.ts'
import { Nullable } from '../shapes.ts'
import type { ValidationError } from '../validation-error.ts'

/** Limits of a tracking key. The key is visible in every visitor's browser, so the limits bound the harm that a copy can do. */
export const KeyLimits = Type.Object({
  origins: Type.Array(Type.String({ maxLength: 300 }), {
    maxItems: 100,
    description: 'Pages that may use it, as the header Origin names them; none: all',
  }),
  event_types: Type.Array(Type.String({ minLength: 1, maxLength: MAX_EVENT_TYPE_LENGTH }), {
    maxItems: 1_000,
    description: 'Names of the events that it may send; none: all',
  }),
  rate_limit: Nullable(SourceConfig.properties.rate_limit),
})
export type KeyLimits = Static<typeof KeyLimits>

export const NO_LIMITS: KeyLimits = { origins: [], event_types: [], rate_limit: null }

/** Checks that the schema cannot express. */
export function validateLimits({ origins = [] }: Partial<KeyLimits>): ValidationError[] {
  return origins.flatMap((origin, index) =>
    isOrigin(origin)
      ? []
      : [{ pointer: `/origins/${index}`, message: 'must be an origin, for example https://shop.example' }],
  )
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text.toLowerCase()
}

/** A request without an Origin header is not from a browser, or is from the page's own host. */
export function allowsOrigin({ origins }: KeyLimits, origin: string | undefined): boolean {
  if (origins.length === 0 || origin === undefined) return true
  const sent = origin.toLowerCase()
  return origins.some(allowed => allowed.toLowerCase() === sent)
}
