import { isWanted, type What } from '../../domain/destinations/destinations.ts'
import { archiveState } from '../../store/archive/archive.ts'
import { type Destination, listSubscribed } from '../../store/destinations/destinations.ts'
import { insertMessages, insertQueued, type Message } from '../../store/destinations/outbox.ts'
import { openMemory, type Transaction } from '../unit.ts'

type Listener = Pick<Destination, 'id' | 'what' | 'eventTypes' | 'enabled'>

/** The destinations that receive messages, and whether the archive is on. */
export type Audience = {
  ofTenant: ReadonlyMap<number, Listener[]>
  /** Whether everything is also written to the file archive. */
  isArchived: boolean
}

/** Reads the audience once per version of the configuration. Without destinations, a transaction pays nothing. */
export type LoadAudience = (transaction: Transaction) => Promise<Audience>

export function openAudience(): LoadAudience {
  const memory = openMemory((): { audience: Audience | null } => ({ audience: null }))
  return async transaction => {
    const known = memory(transaction)
    known.audience ??= await loadAudience(transaction)
    return known.audience
  }
}

// Uses the transaction's own connection. A worker that waits for a second one could wait forever.
async function loadAudience({ client }: Pick<Transaction, 'client'>): Promise<Audience> {
  const { enabled } = await archiveState(client)
  return {
    ofTenant: Map.groupBy(await listSubscribed(client), ({ tenantId }) => tenantId),
    isArchived: enabled,
  }
}

export function isEmpty({ ofTenant, isArchived }: Audience): boolean {
  return ofTenant.size === 0 && !isArchived
}

/** Also true for a disabled destination, because its messages can be replayed later. */
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

/** Writes messages and their deliveries to the outbox, in the transaction of the effects that they report. */
export async function enqueueMessages(
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
