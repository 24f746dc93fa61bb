import { MOVEMENT_TYPES } from '../../domain/billing/account.ts'
import { CAUSES } from '../../domain/billing/cause.ts'
import { Nullable, NullableText, NullableTimestamp, OpenObject, Timestamp } from '../../domain/shapes.ts'
import { type TSchema, Type } from '../../domain/typebox.ts'
import type { TableName } from '../../reports/export/tables.ts'
import { CustomerBody } from '../customers/schemas.ts'
import { ConversionBody, EventBody } from '../events/schemas.ts'
import { buildBodies } from '../records/schemas.ts'

/** The rows of NDJSON exports, for documentation only. */

const Subscription = Type.Object(
  {
    id: Type.String(),
    customer: NullableText,
    customer_name: NullableText,
    customer_email: NullableText,
    status: Type.String(),
    currency: NullableText,
    started_at: NullableTimestamp,
    trial_end: NullableTimestamp,
    current_period_start: NullableTimestamp,
    current_period_end: NullableTimestamp,
    cancel_at_period_end: Type.Boolean(),
    cancel_at: NullableTimestamp,
    canceled_at: NullableTimestamp,
    ended_at: NullableTimestamp,
    cancellation_reason: NullableText,
    collection_method: NullableText,
    updated_at: Timestamp,
    acquisition: Nullable(OpenObject({ description: 'source, medium and campaign, if the sender reports them' })),
    metadata: OpenObject({ description: 'As received' }),
    items: Type.Array(
      Type.Object({
        id: NullableText,
        price_id: NullableText,
        product_id: NullableText,
        name: NullableText,
        quantity: Nullable(Type.Number()),
        unit_amount: Nullable(Type.Number({ description: 'Major units of the currency' })),
        interval: NullableText,
        interval_count: Nullable(Type.Integer()),
        usage_type: NullableText,
      }),
      { description: 'What the customer pays for' },
    ),
    discounts: Type.Array(
      Type.Object({
        percent_off: Type.Optional(Type.Number()),
        amount_off: Type.Optional(Nullable(Type.Number({ description: 'Major units of the currency' }))),
        duration: NullableText,
        ends_at: NullableTimestamp,
      }),
      { description: 'Discounts of the subscription' },
    ),
    livemode: Type.Boolean({ description: 'false: in the test mode of the provider' }),
  },
  { title: 'Subscription', description: 'A subscription in the latest version received' },
)

const ExportedMovement = Type.Object(
  {
    occurred_at: Timestamp,
    currency: Type.String(),
    customer: Type.String(),
    customer_name: NullableText,
    movement_type: Type.Enum([...MOVEMENT_TYPES]),
    mrr_before: Type.Number(),
    mrr_after: Type.Number(),
    mrr_delta: Type.Number(),
    subscription_ids: Type.Array(Type.String()),
    cause: Type.Enum([...CAUSES]),
    event_id: NullableText,
  },
  { title: 'ExportedMovement', description: 'A change of the MRR of an account, with its currency' },
)

export const EXPORTED_ROWS: Record<TableName | 'customers', TSchema> = {
  customers: CustomerBody,
  products: buildBodies('product').stored,
  contacts: buildBodies('contact').stored,
  orders: buildBodies('order').stored,
  events: EventBody,
  conversions: ConversionBody,
  subscriptions: Subscription,
  movements: ExportedMovement,
}
