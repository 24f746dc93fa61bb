import { isWanted, type What } from '../../domain/destinations/destinations.ts'
import { archiveState } from '../../store/archive/archive.ts'
import { type Destination, listSubscribed } from '../../store/destinations/destinations.ts'
import { insertMessages, insertQueued, type Message } from '../../store/destinations/outbox.ts'
import { openMemory, type Transaction } from '../unit.ts'

type Listener = Pick<Destination, 'id' | 'what' | 'eventTypes' | 'enabled'>

/** Who is to be told of what takes effect. */
export type Audience = {
  ofTenant: ReadonlyMap<number, Listener[]>
  /** Whether everything is written to files too. */
  isArchived: boolean
}

/** Read once for each version of the configuration: where nobody is to be told, a transaction pays nothing for it. */
export type AudienceOf = (transaction: Transaction) => Promise<Audience>

export function openAudience(): AudienceOf {
  const memory = openMemory((): { audience: Audience | null } => ({ audience: null }))
  return async transaction => {
    const known = memory(transaction)
    known.audience ??= await loadAudience(transaction)
    return known.audience
  }
}

// On the transaction's own connection: a worker that waits for a second one could wait for ever.
async function loadAudience({ client }: Pick<Transaction, 'client'>): Promise<Audience> {
  const { enabled } = await archiveState(client)
  return {
    ofTenant: Map.groupBy(await listSubscribed(client), ({ tenantId }) => tenantId),
    isArchived: enabled,
  }
}

export function isNobody({ ofTenant, isArchived }: Audience): boolean {
  return ofTenant.size === 0 && !isArchived
}

/** Also where the destination is disabled: what comes meanwhile can be replayed. */
export function isWantedByAny(
  { ofTenant }: Audience,
  tenantId: number,
  message: { what: What; type: string },
): boolean {
  return ofTenant.get(tenantId)?.some(listener => isWanted(listener, message)) ?? false
}

export function wantsAny({ ofTenant }: Pick<Audience, 'ofTenant'>, tenantId: number, what: What): boolean {
  return ofTenant.get(tenantId)?.some(listener => listener.what.includes(what)) ?? false
}

/** Writes messages and what is to be sent of them, with the effects that they tell of or not at all. */
export async function tell(
  { client }: Pick<Transaction, 'client'>,
  { ofTenant }: Pick<Audience, 'ofTenant'>,
  messages: Message[],
): Promise<void> {
  if (messages.length === 0) return
  await insertMessages(client, messages)
  const queued = messages.flatMap(message =>
    (ofTenant.get(message.tenantId) ?? [])
      .filter(listener => listener.enabled && isWanted(listener, message))
      .map(({ id: destinationId }) => ({ ...message, destinationId })),
  )
  if (queued.length > 0) await insertQueued(client, queued)
}
