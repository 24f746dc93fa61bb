import { type Static, Type } from 'typebox'
import { SOURCE_TYPES } from '../../domain/events/events.ts'
import { DEFAULT_SOURCE_CONFIG } from '../../domain/inbound/source-config.ts'
import { Nullable, NullableTimestamp, OpenObject, Timestamp } from '../../domain/shapes.ts'
import { SOURCE_SETTINGS } from '../sources/settings.ts'
import { ReceiptView } from './inbound.ts'
import { created_by } from './keys.ts'

const SOURCE_EXAMPLE = {
  id: 'src_4fTzQ9aXw2LmN8pB',
  tenant: 'ten_1',
  name: 'shop',
  type: 'webhook',
  preset: null,
  enabled: true,
  path: '/ingest/inbound/src_4fTzQ9aXw2LmN8pB',
  ...DEFAULT_SOURCE_CONFIG,
  event_type_override: { prefix: 'shop.' },
  tokens: [{ hint: '…x7Qe', expires_at: null }],
  signing_secrets: [],
  created_by: 'key_9kTzQ9aXw2LmN8pC',
  created_at: '2026-01-31T09:30:00.000Z',
  updated_at: '2026-01-31T09:30:00.000Z',
}

const CredentialView = Type.Object({ hint: Type.String(), expires_at: NullableTimestamp })
export type CredentialView = Static<typeof CredentialView>

const source = {
  id: Type.String(),
  tenant: Type.String(),
  type: Type.Enum([...SOURCE_TYPES]),
  path: Type.String({ description: 'Where events are posted to, below the address of this service' }),
  ...SOURCE_SETTINGS,
  tokens: Type.Array(CredentialView),
  signing_secrets: Type.Array(CredentialView),
  created_by,
  created_at: Timestamp,
  updated_at: Timestamp,
}

export const SourceView = Type.Object(source, { examples: [SOURCE_EXAMPLE] })
export type SourceView = Static<typeof SourceView>

/** The only moment in which token and secret themselves are there. */
export const CreatedSource = Type.Object(
  {
    ...source,
    token: Type.String({ description: 'The token itself, shown only once' }),
    signing_secret: Nullable(Type.String({ description: 'The secret itself, shown only once' })),
  },
  { examples: [{ ...SOURCE_EXAMPLE, token: 'tok_3k…', signing_secret: null }] },
)
export type CreatedSource = Static<typeof CreatedSource>

export const RotatedSource = Type.Object(
  { ...source, token: Type.Optional(Type.String()), signing_secret: Type.Optional(Type.String()) },
  { examples: [{ ...SOURCE_EXAMPLE, token: 'tok_8s…' }] },
)
export type RotatedSource = Static<typeof RotatedSource>

const Headers = Type.Record(Type.String(), Type.String())

/** What became of a sample event: its receipts, and the results that were archived. */
export const SourceTest = Type.Object({
  source_config_id: Type.String(),
  ok: Type.Boolean(),
  sent: Type.Object({ headers: Headers, body: Type.String() }),
  steps: Type.Array(
    Type.Object({
      step: Type.Enum(['source', 'normalize', 'accept', 'process', 'archive']),
      ok: Type.Boolean(),
      detail: Type.String(),
    }),
  ),
  receipts: Type.Array(ReceiptView),
  archived: Type.Array(OpenObject()),
})
export type SourceTest = Static<typeof SourceTest>
