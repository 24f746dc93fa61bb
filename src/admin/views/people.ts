import { type Static, Type } from 'typebox'
import { IDENTITY_KINDS } from '../../domain/identity/identity.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../../domain/shapes.ts'

/** Somebody, by all that they are known by. */
export const PersonView = Type.Object(
  {
    profile_id: Type.String(),
    tenant: Type.String(),
    names: Type.Array(
      Type.Object({
        kind: Type.Enum([...IDENTITY_KINDS]),
        value: Type.String(),
        first_seen_at: Timestamp,
        /** Set where the name belongs to somebody else by now; what came under it before is still here. */
        moved_on_at: NullableTimestamp,
        /** null for the name that the profile began with */
        joined_at: NullableTimestamp,
        cause: Nullable(
          Type.Object(
            { kind: Type.Enum(['event', 'record', 'sale', 'command']), id: Type.String() },
            { description: 'What joined it: an event, a record (contact/…, order/…), a sale, a command' },
          ),
        ),
      }),
    ),
    contact: Nullable(
      Type.Object({ id: Type.String(), name: NullableText, email: NullableText, company: NullableText }),
    ),
    merged_profiles: Type.Array(Type.String(), { description: 'Profiles that were merged into this one' }),
    events: Type.Integer({ minimum: 0, description: 'Sent under one of the names' }),
    events_of_others: Type.Integer({
      minimum: 0,
      description:
        'Sent by somebody else, whom nobody who may has joined, and naming the person: an export and an erasure take them too',
    }),
    conversions: Type.Integer({ minimum: 0, description: 'By their event, their order, or its contact' }),
  },
  {
    examples: [
      {
        profile_id: 'prof_17',
        tenant: 'ten_1',
        names: [
          {
            ...{ kind: 'user', value: 'ada', first_seen_at: '2026-01-31T09:30:00.000Z', moved_on_at: null },
            ...{ joined_at: null, cause: null },
          },
        ],
        contact: null,
        merged_profiles: [],
        events: 12,
        events_of_others: 0,
        conversions: 1,
      },
    ],
  },
)
export type PersonView = Static<typeof PersonView>

export const SplitPeople = Type.Object({ person: PersonView, split_off: PersonView })
export type SplitPeople = Static<typeof SplitPeople>
