import { type Static, Type } from 'typebox'
import { Nullable, NullableTimestamp, Timestamp } from '../../domain/shapes.ts'
import { KeyLimits } from '../../domain/tenants/key-limits.ts'
import { KEY_KINDS, SCOPES } from '../../domain/tenants/keys.ts'
import { ROLES } from '../../domain/tenants/roles.ts'

const KEY_EXAMPLE = {
  id: 'key_4fTzQ9aXw2LmN8pB',
  kind: 'private',
  scopes: ['orders:read', 'orders:write'],
  server: false,
  role: null,
  allowed_addresses: [],
  origins: [],
  event_types: [],
  rate_limit: null,
  tenant: 'ten_1',
  hint: '…x7Qe',
  created_by: 'key_9kTzQ9aXw2LmN8pC',
  created_at: '2026-01-31T09:30:00.000Z',
  expires_at: null,
  expires_soon: false,
  revoked_at: null,
  last_used_at: null,
}

export const created_by = Nullable(
  Type.String({ description: 'Who made it: the id of a key, or cli: and the user of the command line' }),
)

const key = {
  id: Type.String(),
  kind: Type.Enum([...KEY_KINDS]),
  scopes: Type.Array(Type.Enum([...SCOPES])),
  server: Type.Boolean({
    description: 'A tracking key that only servers have: it may alias and merge people',
  }),
  role: Nullable(Type.Enum([...ROLES], { description: 'Of an admin key' })),
  allowed_addresses: Type.Array(Type.String(), {
    description: 'Addresses and networks that it is accepted from; none: from everywhere',
  }),
  ...KeyLimits.properties,
  tenant: Nullable(Type.String({ description: 'null for admin keys that see all tenants' })),
  hint: Type.String({ description: 'How the key ends, to tell keys apart' }),
  created_by,
  created_at: Timestamp,
  expires_at: NullableTimestamp,
  expires_soon: Type.Boolean({ description: 'It ends within 14 days: replace it' }),
  revoked_at: NullableTimestamp,
  last_used_at: NullableTimestamp,
}

export const KeyView = Type.Object(key, { examples: [KEY_EXAMPLE] })
export type KeyView = Static<typeof KeyView>

/** The only moment in which the key itself is there. */
export const CreatedKey = Type.Object(
  { ...key, key: Type.String({ description: 'The key itself, shown only once' }) },
  { examples: [{ ...KEY_EXAMPLE, key: 'private-9f…' }] },
)
export type CreatedKey = Static<typeof CreatedKey>

export const RotatedKey = Type.Object(
  {
    ...CreatedKey.properties,
    previous: Type.Object({ id: Type.String(), expires_at: Timestamp }, { description: 'Good until then' }),
  },
  {
    examples: [
      {
        ...KEY_EXAMPLE,
        key: 'private-9f…',
        previous: { id: 'key_7dTzQ9aXw2LmN8pA', expires_at: '2026-02-01T09:30:00.000Z' },
      },
    ],
  },
)
export type RotatedKey = Static<typeof RotatedKey>

const Made = Type.Object({
  id: Type.String(),
  tenant: Type.String(),
  name: Type.String(),
  enabled: Type.Boolean(),
})

/** What was made with a key, also by keys that it made, and was still good when it was revoked. */
export const RevokedKey = Type.Object(
  {
    ...key,
    made: Type.Object({
      keys: Type.Array(KeyView),
      sources: Type.Array(Made),
      destinations: Type.Array(Made),
    }),
  },
  {
    examples: [
      {
        ...KEY_EXAMPLE,
        revoked_at: '2026-01-31T09:30:00.000Z',
        made: { keys: [], sources: [], destinations: [] },
      },
    ],
  },
)
export type RevokedKey = Static<typeof RevokedKey>
