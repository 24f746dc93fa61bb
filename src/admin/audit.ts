import { isDeepStrictEqual } from 'node:util'
import { newEntryId } from '../domain/ids.ts'
import type { Db } from '../postgres/database.ts'
import { insertChange } from '../store/tenants/audit.ts'
import type { Actor } from './actor.ts'

/** What changed, as operators are shown it: never a secret. Of a change, only the fields that differ. */
export type Change = {
  /** noun.verb */
  action: string
  target: string | null
  /** null: the whole installation. */
  tenantId: number | null
  before?: object | null
  after?: object | null
}

/** Writes who did it, in the transaction that does it. What changed nothing leaves no row. */
export async function recordChange(tx: Db, actor: Actor, change: Change): Promise<void> {
  const { action, target, tenantId } = change
  const { before, after } = difference(change.before ?? null, change.after ?? null)
  if (before && after && Object.keys(after).length === 0) return
  await insertChange(tx, {
    id: newEntryId(Date.now()),
    actor: actor.name,
    action,
    target,
    tenantId,
    ip: actor.ip,
    requestId: actor.requestId,
    before: before && JSON.stringify(before),
    after: after && JSON.stringify(after),
  })
}

/** Every change has a time of its own, which says nothing about it. */
const OWN_TIME = 'updated_at'

function difference(before: object | null, after: object | null) {
  if (before === null || after === null) return { before, after }
  const old = before as Record<string, unknown>
  const now = after as Record<string, unknown>
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter(
    name => name !== OWN_TIME && !isDeepStrictEqual(old[name], now[name]),
  )
  const only = (values: Record<string, unknown>) =>
    Object.fromEntries(names.map(name => [name, values[name] ?? null]))
  return { before: only(old), after: only(now) }
}
