import { type Static, Type } from 'typebox'
import { Nullable, NullableText, Timestamp, Uuid } from '../../domain/shapes.ts'

const AuditedState = Nullable(
  Type.Unsafe<object>(Type.Object({}, { description: 'Only what differs; never a secret' })),
)

/** Who changed what. */
export const AuditView = Type.Object(
  {
    id: Uuid,
    at: Timestamp,
    actor: Type.String({ description: 'The id of a key, or cli: and the user of the command line' }),
    action: Type.String({ description: 'noun.verb' }),
    target: Nullable(
      Type.String({ description: 'The id of what was changed; of an erasure, a hash that names nobody' }),
    ),
    tenant: Nullable(Type.String({ description: 'null: it concerns the whole installation' })),
    ip: NullableText,
    request_id: NullableText,
    before: AuditedState,
    after: AuditedState,
  },
  {
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300004',
        at: '2026-01-31T09:30:00.000Z',
        actor: 'key_4fTzQ9aXw2LmN8pB',
        action: 'source.disable',
        target: 'src_4fTzQ9aXw2LmN8pB',
        tenant: 'ten_1',
        ip: '203.0.113.7',
        request_id: 'req_8sT2kQ',
        before: { enabled: true },
        after: { enabled: false },
      },
    ],
  },
)
export type AuditView = Static<typeof AuditView>
