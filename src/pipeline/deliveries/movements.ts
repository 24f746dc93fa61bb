import { formatMovement } from '../../domain/billing/movements.ts'
import { hashToId } from '../../domain/ids.ts'
import type { MovementRow } from '../../store/billing/accounts.ts'
import type { ObjectKey } from '../../store/billing/rows.ts'
import { listSubscribed } from '../../store/destinations/destinations.ts'
import { findSentMessages, lockMovementClock, type Message, movementsBetween } from '../../store/destinations/outbox.ts'
import { accountNames } from '../../store/reports/accounts.ts'
import type { Deriving } from '../unit.ts'
import { type Audience, enqueueMessages, wantsAny } from './audience.ts'

type TenantAudience = Pick<Audience, 'ofTenant'>
type NewMovement = Pick<MovementRow, 'tenantId' | 'id' | 'currency' | 'movement'>

/**
 * Notifies destinations of the movements that `replace` writes for the first time. A movement that a late event only
 * rewrites is not sent again. Jobs, which have no memory, derive accounts, too. So the destinations are read every time.
 */
export async function notifyMovements(
  { client, now }: Deriving,
  accounts: ObjectKey[],
  replace: (isNotifying: boolean) => Promise<MovementRow[]>,
): Promise<void> {
  const tenants = new Set(accounts.map(({ tenantId }) => tenantId))
  const listeners = (await listSubscribed(client, 'movements')).filter(({ tenantId }) => tenants.has(tenantId))
  const audience: TenantAudience = { ofTenant: Map.groupBy(listeners, ({ tenantId }) => tenantId) }
  const added = await replace(listeners.length > 0)
  // Future movements are sent when they are due, because they may still change.
  await enqueueMovements(
    { client, now },
    audience,
    added.filter(({ movement }) => movement.at <= now.getTime()),
  )
}

/** Sends each movement once, however often it is written: its id is a hash of account, currency and time. */
async function enqueueMovements(
  { client, now }: Deriving,
  audience: TenantAudience,
  movements: NewMovement[],
): Promise<void> {
  const wanted = movements.filter(({ tenantId }) => wantsAny(audience, tenantId, 'movements'))
  for (const [tenantId, own] of Map.groupBy(wanted, movement => movement.tenantId)) {
    const known = await findSentMessages(client, tenantId, own.map(movementId))
    const fresh = own.filter(movement => !known.has(movementId(movement)))
    const names = await accountNames(client, tenantId, [...new Set(fresh.map(({ id }) => id))])
    await enqueueMessages(
      { client },
      audience,
      fresh.map(movement => movementMessage(movement, names.get(movement.id) ?? null, now)),
    )
  }
}

/** Notifies destinations of the movements that have become due since the last run. */
export async function notifyDueMovements({ client, now }: Deriving): Promise<void> {
  const since = await lockMovementClock(client, now)
  if (since === null) return
  const listeners = await listSubscribed(client, 'movements')
  if (listeners.length === 0) return
  const ofTenant = Map.groupBy(listeners, ({ tenantId }) => tenantId)
  const due = await movementsBetween(client, [...ofTenant.keys()], { since, until: now })
  await enqueueMovements({ client, now }, { ofTenant }, due)
}

function movementId({ tenantId, id, currency, movement }: NewMovement): string {
  return hashToId(JSON.stringify(['movement', tenantId, id, currency, movement.at]))
}

function movementMessage(moved: NewMovement, name: string | null, at: Date): Message {
  const { tenantId, id, currency, movement } = moved
  return {
    ...{ tenantId, id: movementId(moved), at, what: 'movements', object: id },
    type: `movement.${movement.type}`,
    data: JSON.stringify(
      formatMovement({ ...movement, account: id, customerName: name, currency, at: new Date(movement.at) }),
    ),
  }
}
