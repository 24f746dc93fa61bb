import { CUSTOMER_STATUSES } from '../../domain/customers/customers.ts'
import { Count, Nullable, NullableText, NullableTimestamp, Timestamp } from '../../domain/shapes.ts'
import { type Static, Type } from '../../domain/typebox.ts'

/** The rows of the routes for customers. The console imports their types. */

const Amounts = (description: string) =>
  Type.Record(Type.String(), Type.Number(), { description, examples: [{ EUR: 49.9 }] })

export const CustomerBody = Type.Object(
  {
    profile_id: Type.String(),
    contact_id: NullableText,
    customer: Nullable(Type.String({ description: 'The billing account with the largest MRR' })),
    name: NullableText,
    email: NullableText,
    company: NullableText,
    country: NullableText,
    channel: Nullable(Type.String({ description: 'The channel by the rules of the tenant; null: unattributed' })),
    plans: Nullable(Type.Array(Type.String(), { description: 'Null without the scope subscriptions:read' })),
    first_seen_at: Timestamp,
    last_seen_at: Type.String({ format: 'timestamp', description: 'Accurate to about 15 minutes' }),
    customer_since: NullableTimestamp,
    orders: Nullable(
      Type.Integer({ minimum: 0, description: 'Number of sales. Null without the scope conversions:read' }),
    ),
    revenue: Nullable(Amounts('Sales by currency. Null without the scope conversions:read')),
    mrr: Nullable(Amounts('Current MRR by currency. Null without the scope subscriptions:read')),
    status: Type.Enum([...CUSTOMER_STATUSES]),
  },
  { title: 'Customer', description: 'A person with a purchase, a subscription or a contact' },
)
export type CustomerBody = Static<typeof CustomerBody>

export const ChannelBody = Type.Object(
  {
    channel: Nullable(Type.String({ description: 'The channel by the rules of the tenant; null: unattributed' })),
    visitors: Type.Integer({ description: 'People whose first visit was in the window' }),
    identified: Type.Integer({
      description: 'Of these people: those with a user id, an e-mail address, a contact or a purchase',
    }),
    trials: Nullable(
      Type.Integer({ description: 'Of these people: those with a trial. Null without the scope subscriptions:read' }),
    ),
    customers: Type.Integer({ description: 'Of these people: those with a purchase or a payment' }),
    revenue: Nullable(Amounts('Their sales by currency. Null without the scope conversions:read')),
    mrr: Nullable(Amounts('Their current MRR by currency. Null without the scope subscriptions:read')),
  },
  { title: 'Channel', description: 'The people of one channel: visitors, trials, customers, and their revenue' },
)
export type ChannelBody = Static<typeof ChannelBody>

const FunnelStepBody = Type.Object(
  {
    name: Type.String(),
    people: Count,
    rate: Nullable(Type.Number({ description: 'Share of the people of the previous step' })),
    total_rate: Nullable(Type.Number({ description: 'Share of the people of the first step' })),
    median_seconds: Nullable(
      Type.Integer({
        description: 'Median time since the first step; null: the first step, or no one completed the step',
      }),
    ),
  },
  { title: 'FunnelStep', description: 'The people who did one step of a funnel' },
)

export const FunnelBody = Type.Object(
  {
    since: Timestamp,
    until: Timestamp,
    within_days: Type.Integer(),
    steps: Type.Array(FunnelStepBody),
    breakdown: Type.Optional(
      Type.Array(
        Type.Object({
          name: Nullable(Type.String({ description: 'The channel or source; null: unattributed' })),
          steps: Type.Array(Type.Object({ name: Type.String(), people: Count, rate: Nullable(Type.Number()) }), {
            description: 'The same steps, for this group',
          }),
        }),
        { description: 'The 50 largest groups, with `breakdown`' },
      ),
    ),
  },
  { title: 'Funnel', description: 'The number of people who completed several steps in order' },
)
export type FunnelBody = Static<typeof FunnelBody>
