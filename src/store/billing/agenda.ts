import type { AgendaEntry } from '../../domain/billing/agenda.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { type DerivedTable, replaceRows, replacing } from './derived.ts'
import { keyColumns, type ObjectKey, timeText } from './keys.ts'
import { AGENDA_EFFECTS } from './sums.ts'

/** Subscriptions whose agenda ends before `until`, those first that need it most. */
export async function shortAgendas(db: Db, until: number, limit: number): Promise<ObjectKey[]> {
  const { rows } = await queryPrepared<ObjectKey>(
    db,
    `select tenant_id as "tenantId", id from billing_subscriptions where agenda_until < $1
     order by agenda_until limit $2`,
    [timeText(until), limit],
  )
  return rows
}

/** These subscriptions were seen, and how far ahead their agenda is filled; null where nothing recurs. */
export async function noteSubscriptions(
  db: Db,
  subscriptions: (ObjectKey & { agendaUntil: number | null })[],
): Promise<void> {
  await queryPrepared(
    db,
    `update billing_subscriptions s set seen = true, agenda_until = k.agenda_until
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, agenda_until)
     where s.tenant_id = k.tenant_id and s.id = k.id
       and (not s.seen or s.agenda_until is distinct from k.agenda_until)`,
    [
      ...keyColumns(subscriptions),
      subscriptions.map(({ agendaUntil }) => (agendaUntil === null ? null : timeText(agendaUntil))),
    ],
  )
}

const AGENDA: DerivedTable = {
  name: 'billing_agenda',
  owner: 'subscription_id',
  key: ['kind', 'due_at', 'known_from'],
  values: ['currency', 'known_to', 'body'],
  compared: row => `(${row}.currency, ${row}.known_to, ${row}.body::text)`,
}
const REPLACE_AGENDA = replacing(AGENDA, AGENDA_EFFECTS)

/** With the sums of days that they are part of. */
export async function replaceAgenda(
  db: Db,
  subscriptions: ObjectKey[],
  entries: (ObjectKey & { entry: AgendaEntry })[],
): Promise<void> {
  const rows = entries.map(({ tenantId, id, entry }) => ({
    tenant_id: tenantId,
    currency: entry.currency,
    kind: entry.kind,
    due_at: timeText(entry.dueAt),
    subscription_id: id,
    known_from: entry.knownFrom === null ? '-infinity' : timeText(entry.knownFrom),
    known_to: timeText(entry.knownTo),
    body: entry.body,
  }))
  await replaceRows(db, REPLACE_AGENDA, subscriptions, rows)
}
