import { mainChange } from '../../domain/billing/movements.ts'
import { newEntryId } from '../../domain/ids.ts'
import { toMajor } from '../../domain/money.ts'
import type { MovementRow } from '../../store/billing/accounts.ts'
import type { ObjectKey } from '../../store/billing/keys.ts'
import { listWanted } from '../../store/destinations/destinations.ts'
import type { Message } from '../../store/destinations/outbox.ts'
import { accountNames } from '../../store/reports/accounts.ts'
import type { Deriving } from '../unit.ts'
import { type Audience, tell, wantsAny } from './audience.ts'

/**
 * Tells destinations of the movements that `replace` writes for the first time; where a late event only rewrites one, nobody
 * is told. Accounts are derived by jobs too, which remember nothing: it is asked each time who wants to know.
 */
export async function tellingMovements(
  { client, now }: Deriving,
  accounts: ObjectKey[],
  replace: (telling: boolean) => Promise<MovementRow[]>,
): Promise<void> {
  const tenants = new Set(accounts.map(({ tenantId }) => tenantId))
  const listeners = (await listWanted(client, 'movements')).filter(({ tenantId }) => tenants.has(tenantId))
  const audience: Audience = { ofTenant: Map.groupBy(listeners, ({ tenantId }) => tenantId) }
  const added = await replace(listeners.length > 0)
  const wanted = added.filter(({ tenantId }) => wantsAny(audience, tenantId, 'movements'))
  for (const [tenantId, own] of Map.groupBy(wanted, movement => movement.tenantId)) {
    const names = await accountNames(client, tenantId, [...new Set(own.map(({ id }) => id))])
    await tell(
      { client },
      audience,
      own.map(movement => messageOf(movement, names.get(movement.id) ?? null, now)),
    )
  }
}

function messageOf(
  { tenantId, id, currency, movement }: MovementRow,
  name: string | null,
  at: Date,
): Message {
  const main = mainChange(movement.changes)
  const money = (minor: number) => toMajor(minor, currency)
  return {
    ...{ tenantId, id: newEntryId(at.getTime()), at, what: 'movements', object: id },
    type: `movement.${movement.type}`,
    data: JSON.stringify({
      occurred_at: new Date(movement.at),
      customer: id,
      customer_name: name,
      currency,
      movement_type: movement.type,
      mrr_before: money(movement.before),
      mrr_after: money(movement.after),
      mrr_delta: money(movement.after - movement.before),
      subscription_ids: movement.changes.map(({ subscriptionId }) => subscriptionId),
      cause: main?.cause ?? 'other',
      event_id: main?.eventId ?? null,
    }),
  }
}
