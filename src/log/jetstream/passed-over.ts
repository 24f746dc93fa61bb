import type { Db } from '../../postgres/database.ts'
import type { PassedOver } from '../log.ts'

/** A message of the stream in which no entries can be read. */
export type PassedMessage = {
  seq: number
  at: Date
  subject: string
  reason: string
  /** Not from Kontor. */
  isForeign: boolean
  /** Of one that is Kontor's and nobody's in particular: there is no other place for it. */
  payload: Uint8Array | null
}

/** With the position that moves past them, or not at all. */
export async function keepPassedOver(db: Db, stream: string, messages: PassedMessage[]): Promise<void> {
  await db.query(
    `insert into jetstream_skipped_messages (stream, seq, stored_at, subject, reason, is_foreign, payload)
     select $1, * from unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::boolean[], $7::bytea[])
     on conflict do nothing`,
    [
      stream,
      messages.map(({ seq }) => seq),
      messages.map(({ at }) => at),
      messages.map(({ subject }) => subject),
      messages.map(({ reason }) => reason),
      messages.map(({ isForeign }) => isForeign),
      messages.map(({ payload }) => payload && Buffer.from(payload)),
    ],
  )
}

export async function countPassedOver(db: Db, stream: string): Promise<PassedOver> {
  const { rows } = await db.query<NonNullable<PassedOver['foreign']> & { isForeign: boolean }>(
    `select distinct on (is_foreign) is_foreign as "isForeign", seq, subject, stored_at as at,
       count(*) over (partition by is_foreign)::int as messages
     from jetstream_skipped_messages where stream = $1 order by is_foreign, stored_at desc, seq desc`,
    [stream],
  )
  const found = (foreign: boolean) => rows.find(({ isForeign }) => isForeign === foreign) ?? null
  return { foreign: found(true), unreadable: found(false) }
}

/** The stream would not have them any longer, either. */
export async function dropPassedOver(db: Db, stream: string, keptMs: number): Promise<void> {
  await db.query(
    `delete from jetstream_skipped_messages where stream = $1 and skipped_at < now() - $2 * interval '1 ms'`,
    [stream, keptMs],
  )
}

/** They may hold what was erased elsewhere; that there were such messages is still told. */
export async function erasePayloads(db: Db, stream: string): Promise<void> {
  await db.query(
    'update jetstream_skipped_messages set payload = null where stream = $1 and payload is not null',
    [stream],
  )
}
