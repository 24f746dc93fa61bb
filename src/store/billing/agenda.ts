import {
  type AgendaEntry,
  agendaHorizon,
  agendaNeededUntil,
  agendaOf,
  goesOn,
} from '../../domain/billing/agenda.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { lockSubscriptions } from './subscriptions.ts'
import { keyColumns, keyText, type ObjectKey, timeText } from './versions.ts'

/** Writes what these subscriptions are expected to do, and that they were seen. They are locked. */
export async function writeAgenda(
  db: Db,
  subscriptions: (ObjectKey & { segments: Segment[] })[],
  now: number,
): Promise<void> {
  const horizon = agendaHorizon(now)
  await replaceAgenda(
    db,
    subscriptions,
    subscriptions.flatMap(({ tenantId, id, segments }) =>
      agendaOf(segments, now, horizon).map(entry => ({ tenantId, id, entry })),
    ),
  )
  await noteSubscriptions(
    db,
    subscriptions.map(({ tenantId, id, segments }) => ({
      tenantId,
      id,
      agendaUntil: goesOn(segments, horizon) ? horizon : null,
    })),
  )
}

/** Fills in what has come within reach, for some of the subscriptions that need it. Returns for how many. */
export async function extendAgenda(db: Db, now: number, limit: number): Promise<number> {
  const { rows } = await queryPrepared<{ tenant_id: number; id: string }>(
    db,
    'select tenant_id, id from billing_subscriptions where agenda_until < $1 order by agenda_until limit $2',
    [timeText(agendaNeededUntil(now)), limit],
  )
  if (rows.length === 0) return 0
  const keys = rows.map(row => ({ tenantId: row.tenant_id, id: row.id }))
  await lockSubscriptions(db, keys, [])
  const segments = await segmentsFrom(db, keys, now)
  await writeAgenda(
    db,
    keys.map(key => ({ ...key, segments: segments.get(keyText(key)) ?? [] })),
    now,
  )
  return keys.length
}

async function segmentsFrom(db: Db, keys: ObjectKey[], now: number): Promise<Map<string, Segment[]>> {
  const { rows } = await queryPrepared<{ tenant_id: number; subscription_id: string; body: string }>(
    db,
    `select s.tenant_id, s.subscription_id, s.body from billing_segments s
     join unnest($1::int[], $2::text[]) as k (tenant_id, id) on s.tenant_id = k.tenant_id and s.subscription_id = k.id
     where s.valid_to > $3 order by s.valid_from`,
    [...keyColumns(keys), timeText(now)],
  )
  const found = new Map<string, Segment[]>()
  for (const row of rows) {
    const key = keyText({ tenantId: row.tenant_id, id: row.subscription_id })
    found.set(key, [...(found.get(key) ?? []), JSON.parse(row.body)])
  }
  return found
}

async function noteSubscriptions(
  db: Db,
  subscriptions: (ObjectKey & { agendaUntil: number | null })[],
): Promise<void> {
  await queryPrepared(
    db,
    `update billing_subscriptions s set seen = true, agenda_until = k.agenda_until
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, agenda_until)
     where s.tenant_id = k.tenant_id and s.id = k.id
       and (not s.seen or s.agenda_until is distinct from k.agenda_until)`,
    [...keyColumns(subscriptions), subscriptions.map(one => one.agendaUntil && timeText(one.agendaUntil))],
  )
}

const COLUMNS = 'tenant_id, currency, kind, due_at, subscription_id, known_from, known_to, body'

async function replaceAgenda(
  db: Db,
  subscriptions: ObjectKey[],
  entries: (ObjectKey & { entry: AgendaEntry })[],
): Promise<void> {
  await queryPrepared(
    db,
    `with wanted as materialized (
       select * from json_populate_recordset(null::billing_agenda, $3)
     ), gone as (
       delete from billing_agenda a using unnest($1::int[], $2::text[]) as k (tenant_id, id)
       where a.tenant_id = k.tenant_id and a.subscription_id = k.id and not exists (
         select from wanted w where w.tenant_id = a.tenant_id and w.subscription_id = a.subscription_id
           and w.kind = a.kind and w.due_at = a.due_at and w.known_from = a.known_from)
     )
     insert into billing_agenda as a (${COLUMNS}) select ${COLUMNS} from wanted
     on conflict (tenant_id, subscription_id, kind, due_at, known_from) do update set
       currency = excluded.currency, known_to = excluded.known_to, body = excluded.body
     where (a.currency, a.known_to, a.body::text) is distinct from
       (excluded.currency, excluded.known_to, excluded.body::text)`,
    [
      ...keyColumns(subscriptions),
      JSON.stringify(
        entries.map(({ tenantId, id, entry }) => ({
          tenant_id: tenantId,
          currency: entry.currency,
          kind: entry.kind,
          due_at: timeText(entry.dueAt),
          subscription_id: id,
          known_from: entry.knownFrom === null ? '-infinity' : timeText(entry.knownFrom),
          known_to: timeText(entry.knownTo),
          body: entry.body,
        })),
      ),
    ],
  )
}
