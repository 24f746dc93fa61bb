import type { Fields } from '../../billing/fields.ts'
import type { Instant } from '../../billing/types.ts'

/** What a Stripe event is about, whatever its envelope was. */
export type StripeSubject = {
  type: string
  object: Fields
  /** Values before the change, of the fields that changed. */
  previous: Fields
  sourceAt: Instant
  /** Null where the object came without its event. */
  eventId: string | null
}
