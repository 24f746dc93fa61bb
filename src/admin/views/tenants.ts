import { type Static, Type } from 'typebox'
import { MAX_EVENT_TYPE_LENGTH } from '../../domain/events/events.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../../domain/shapes.ts'
import { IP_MODES } from '../../domain/tenants/ip-addresses.ts'

export const ConversionTypes = Nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: MAX_EVENT_TYPE_LENGTH }), {
    maxItems: 1000,
    description: 'Event types that count as conversions; null: the default list',
  }),
)

export const EventsFloor = Nullable(
  Type.String({
    maxLength: 6,
    description:
      'How long ago an event of a public tracking key may say it happened: days (`3650d`) or `off`; null: as the installation has it (`KONTOR_EVENTS_FLOOR`)',
  }),
)

export const IpAddresses = Type.Enum([...IP_MODES], {
  description:
    'What becomes of IP addresses that come in with events, before anything is written: kept, cut to their network (IPv4 /24, IPv6 /48), or dropped',
})

export const TenantView = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    conversion_types: ConversionTypes,
    events_floor: EventsFloor,
    ip_addresses: IpAddresses,
    created_at: Timestamp,
  },
  {
    examples: [
      {
        id: 'ten_1',
        name: 'acme',
        conversion_types: null,
        events_floor: null,
        ip_addresses: 'keep',
        created_at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
)
export type TenantView = Static<typeof TenantView>

const either =
  (...values: string[]) =>
  (description: string) =>
    Type.Enum(values, { description })

const policySettings = {
  pause: either('churn', 'keep')('Whether a subscription that is paused leaves MRR or keeps what it had'),
  trial_on_paying: either('churn', 'keep')('The same of one that is put on trial after it counted'),
  past_due_grace_days: Type.Union([Type.Literal('none'), Type.Integer()], {
    description: 'For how many days a past-due subscription counts; none: as long as it is past due',
  }),
  time_zone: Type.String({
    description: 'Of days, weeks and months in reports: a name of the IANA database',
    examples: ['Europe/Berlin'],
  }),
  net_within_day: Type.Boolean({ description: 'Whether movements of one account on one day are one' }),
  retention_base: either(
    'first_instant',
    'end_of_month',
  )('What retention is measured by: what an account first paid, or paid at the end of its first month'),
}

export const PolicyView = Type.Object(
  {
    tenant: Type.String(),
    version: Type.Integer({ description: 'Every change makes another; 1 is what holds before any' }),
    ...policySettings,
    set_at: NullableTimestamp,
    set_by: NullableText,
    applied: Type.Boolean({
      description: 'Whether reports follow it; if not yet, the ledger is being restated by it',
    }),
    applied_version: Type.Integer({ description: 'The version that reports follow' }),
  },
  {
    examples: [
      {
        tenant: 'ten_1',
        version: 2,
        pause: 'keep',
        trial_on_paying: 'churn',
        past_due_grace_days: 'none',
        time_zone: 'Europe/Berlin',
        net_within_day: false,
        retention_base: 'first_instant',
        set_at: '2026-01-31T09:30:00.000Z',
        set_by: 'cli:ada',
        applied: true,
        applied_version: 2,
      },
    ],
  },
)
export type PolicyView = Static<typeof PolicyView>
