import { formatMovement } from '../../domain/billing/movements.ts'
import { hashToId } from '../../domain/ids.ts'
import type { MovementRow } from '../../store/billing/accounts.ts'
import type { ObjectKey } from '../../store/billing/rows.ts'
import { listSubscribed } from '../../store/destinations/destinations.ts'
import {
  findSentMessages,
  lockMovementClock,
  type Message,
  movementsBetween,
} from '../../store/destinations/outbox.ts'
import { accountNames } from '../../store/reports/accounts.ts'
import type { Deriving } from '../unit.ts'
import { type Audience, tell, wantsAny } from './audience.ts'

type TenantAudience = Pick<Audience, 'ofTenant'>
type TellableMovement = Pick<MovementRow, 'tenantId' | 'id' | 'currency' | 'movement'>

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
  const listeners = (await listSubscribed(client, 'movements')).filter(({ tenantId }) =>
    tenants.has(tenantId),
  )
  const audience: TenantAudience = { ofTenant: Map.groupBy(listeners, ({ tenantId }) => tenantId) }
  const added = await replace(listeners.length > 0)
  // What lies ahead is told when it is there: until then it may still change.
  await tellMovements(
    { client, now },
    audience,
    added.filter(({ movement }) => movement.at <= now.getTime()),
  )
}

/** Each once, however often it is written: its id is made of the account, the currency and the moment. */
async function tellMovements(
  { client, now }: Deriving,
  audience: TenantAudience,
  movements: TellableMovement[],
): Promise<void> {
  const wanted = movements.filter(({ tenantId }) => wantsAny(audience, tenantId, 'movements'))
  for (const [tenantId, own] of Map.groupBy(wanted, movement => movement.tenantId)) {
    const known = await findSentMessages(client, tenantId, own.map(movementId))
    const fresh = own.filter(movement => !known.has(movementId(movement)))
    const names = await accountNames(client, tenantId, [...new Set(fresh.map(({ id }) => id))])
    await tell(
      { client },
      audience,
      fresh.map(movement => messageOf(movement, names.get(movement.id) ?? null, now)),
    )
  }
}

/** Tells of movements whose time has come since this was last done. */
export async function tellDueMovements({ client, now }: Deriving): Promise<void> {
  const since = await lockMovementClock(client, now)
  if (since === null) return
  const listeners = await listSubscribed(client, 'movements')
  if (listeners.length === 0) return
  const ofTenant = Map.groupBy(listeners, ({ tenantId }) => tenantId)
  const due = await movementsBetween(client, [...ofTenant.keys()], { since, until: now })
  await tellMovements({ client, now }, { ofTenant }, due)
}

function movementId({ tenantId, id, currency, movement }: TellableMovement): string {
  return hashToId(JSON.stringify(['movement', tenantId, id, currency, movement.at]))
}

function messageOf(moved: TellableMovement, name: string | null, at: Date): Message {
  const { tenantId, id, currency, movement } = moved
  return {
    ...{ tenantId, id: movementId(moved), at, what: 'movements', object: id },
    type: `movement.${movement.type}`,
    data: JSON.stringify(
      formatMovement({ ...movement, account: id, customerName: name, currency, at: new Date(movement.at) }),
    ),
  }
}
