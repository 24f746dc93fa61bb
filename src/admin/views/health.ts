import { type Static, Type } from 'typebox'
import { Count, Nullable, NullableText, NullableTimestamp, Timestamp } from '../../domain/shapes.ts'

const ByHour = Type.Array(Type.Integer(), {
  description: 'The last 24 hours, oldest first; the last is not over',
})

const HoursOfActivity = Type.Object({
  last_24_hours: Count,
  by_hour: Type.Array(Type.Integer(), {
    description: 'The last 24 hours, oldest first; the last is not over. Counted up to 10,000 in an hour',
  }),
})

/** How much a source brought. */
export const SourceActivity = Type.Object({
  id: Type.String(),
  received: HoursOfActivity,
  refused: HoursOfActivity,
})
export type SourceActivity = Static<typeof SourceActivity>

/** How sending to a destination went: attempts. */
export const DestinationActivity = Type.Object({
  id: Type.String(),
  delivered: HoursOfActivity,
  failed: HoursOfActivity,
})
export type DestinationActivity = Static<typeof DestinationActivity>

/** How a tenant stands. */
export const HealthView = Type.Object({
  tenant: Type.String(),
  waiting: Nullable(
    Type.Object(
      { entries: Count, oldest_at: NullableTimestamp },
      {
        description:
          'Accepted and not processed yet, of this tenant; null while that is not known, because the log is away or holds more than 100,000 of all tenants',
      },
    ),
  ),
  retrying: Type.Object(
    { entries: Count, oldest_at: NullableTimestamp },
    { description: 'Of this tenant: could not be applied, and are tried again; what waits behind them too' },
  ),
  installation: Nullable(
    Type.Object(
      {
        waiting: Nullable(Type.Object({ entries: Count, oldest_at: NullableTimestamp })),
      },
      { description: 'Of all tenants together; null for who has but one' },
    ),
  ),
  dead_letters: Type.Object({ open: Count, by_hour: ByHour }),
  refused: Type.Object({ last_24_hours: Count, by_hour: ByHour }),
  deferred: Type.Object({ events: Count, oldest_at: NullableTimestamp }),
  disk_free: Nullable(
    Type.Number({
      description: 'Of the whole installation, from 0 to 1; null where PostgreSQL is not the embedded one',
    }),
  ),
  disk_days_left: Nullable(
    Type.Number({
      description:
        'Until the disk of the installation is full, at the pace of the last day; null while that is not known, or it does not fill',
    }),
  ),
})
export type HealthView = Static<typeof HealthView>

/** Failures that have one cause. */
export const IssueView = Type.Object({
  kind: Type.Enum(['dead_letters', 'refused', 'failing_destination']),
  cause: Type.String({
    description:
      'Of dead letters the error without what varies, of refused requests of a source their code, of those with a key the reason without what varies, of a destination its name',
  }),
  reason: NullableText,
  route: Nullable(Type.String({ description: 'Of refused requests with a key, for example POST /v1/track' })),
  source_config_id: NullableText,
  destination_id: NullableText,
  count: Type.Integer({ minimum: 0, description: 'Of a destination: messages still to be delivered' }),
  first_at: Timestamp,
  last_at: Timestamp,
  example: Type.String({ description: 'The newest error or refusal, in full' }),
  example_id: Nullable(Type.String({ format: 'uuid', description: 'The newest dead letter' })),
})
export type IssueView = Static<typeof IssueView>
