import type { Credential } from './types.ts'

/** Destinations and what became of what was sent to them, as far as the console reads it; see types.ts. */

type Time = string
type Maybe<T> = T | null

export const WHATS = ['events', 'conversions', 'records', 'movements', 'alerts'] as const
export type What = (typeof WHATS)[number]

export type Destination = {
  id: string
  tenant: string
  name: string
  url: string
  what: What[]
  event_types: string[]
  enabled: boolean
  /** Values are never shown. */
  headers: Record<string, string>
  disabled_reason: Maybe<string>
  secrets: Credential[]
  health: {
    status: 'ok' | 'failing' | 'disabled'
    pending: number
    failing_since: Maybe<Time>
    last_attempt_at: Maybe<Time>
    last_success_at: Maybe<Time>
    last_status: Maybe<number>
    last_error: Maybe<string>
  }
  created_at: Time
  updated_at: Time
}
export type CreatedDestination = Destination & { secret: string }
export type DestinationSettings = {
  name?: string
  url: string
  what: string[]
  event_types: string[]
  headers?: Record<string, string>
}
export type DestinationTest = {
  ok: boolean
  status: Maybe<number>
  error: Maybe<string>
  response: Maybe<string>
  duration_ms: number
}
export type DeliveryOutcome = 'delivered' | 'retrying' | 'failed'
export type Delivery = {
  id: string
  type: string
  outcome: DeliveryOutcome
  attempt: number
  attempted_at: Time
  status: Maybe<number>
  error: Maybe<string>
  response: Maybe<string>
  duration_ms: number
  next_attempt_at: Maybe<Time>
}
