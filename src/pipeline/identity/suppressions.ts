import { namesInEntry } from '../../domain/identity/erasure.ts'
import type { Identity } from '../../domain/identity/identity.ts'
import { identitiesOfContact, identitiesOfOrder } from '../../domain/identity/identity.ts'
import { nameHashes, namelessOrder } from '../../domain/identity/suppression.ts'
import type { NewDeadLetter } from '../../store/entries/dead-letters.ts'
import {
  countSuppressed,
  deleteLogged,
  findSuppressed,
  type SuppressionCount,
  suppressingTenants,
} from '../../store/identity/suppressions.ts'
import { openMemory } from '../memory.ts'
import type { Change } from '../records/change.ts'
import type { Transaction } from '../unit.ts'

/** People who were erased, and are not to be recorded again. */
export type Suppressions = {
  /** Of each thing, whether it names one of them. */
  among(
    transaction: Transaction,
    things: { tenantId: number; identities: () => Identity[] }[],
  ): Promise<boolean[]>
  /** Contacts of theirs are left out (null), their orders lose all names; the others stay as they are. */
  changes(transaction: Transaction, changes: Change[]): Promise<(Change | null)[]>
  /** What is given up and names one of them is not kept either. */
  letters(transaction: Transaction, letters: NewDeadLetter[]): Promise<SortedLetters>
  /** Counts what was not recorded, and takes it out of the log. */
  note(transaction: Transaction, kind: 'events' | 'records', things: Noted[]): Promise<void>
}

type SortedLetters = { kept: NewDeadLetter[]; suppressed: NewDeadLetter[] }

type Noted = { tenantId: number; id: string; receivedAt: Date }

/** Where nobody is suppressed, it costs a look at what is remembered. */
export function openSuppressions(): Suppressions {
  const memory = openMemory(() => new Map<number, boolean>())

  async function suppressing(
    transaction: Transaction,
    tenantIds: Set<number>,
  ): Promise<Map<number, boolean>> {
    const known = memory(transaction)
    const unknown = [...tenantIds].filter(id => !known.has(id))
    if (unknown.length === 0) return known
    const found = await suppressingTenants(transaction.client, unknown)
    for (const id of unknown) known.set(id, found.has(id))
    return known
  }

  const among: Suppressions['among'] = async (transaction, things) => {
    const known = await suppressing(transaction, new Set(things.map(({ tenantId }) => tenantId)))
    const names = things.map(({ tenantId, identities }) =>
      known.get(tenantId) ? nameHashes(tenantId, identities()).map(hash => ({ tenantId, hash })) : [],
    )
    const wanted = names.flat()
    if (wanted.length === 0) return things.map(() => false)
    const found = await findSuppressed(transaction.client, wanted)
    return names.map(own =>
      own.some(({ tenantId, hash }) => found.has(`${tenantId} ${hash.toString('hex')}`)),
    )
  }

  const note: Suppressions['note'] = async ({ client }, kind, things) => {
    if (things.length === 0) return
    const counts = [...Map.groupBy(things, ({ tenantId }) => tenantId)].map(
      ([tenantId, own]): SuppressionCount => ({ tenantId, events: 0, records: 0, [kind]: own.length }),
    )
    await deleteLogged(client, things)
    await countSuppressed(client, counts)
  }

  return {
    among,
    note,
    async letters(transaction, letters) {
      const are = await among(
        transaction,
        letters.map(({ entry }) => ({ tenantId: entry.tenantId, identities: () => namesInEntry(entry) })),
      )
      const suppressed = letters.filter((_, i) => are[i])
      for (const [kind, own] of Map.groupBy(suppressed, ({ entry }) => entry.kind))
        await note(
          transaction,
          kind === 'record' ? 'records' : 'events',
          own.map(({ id, entry: { tenantId, receivedAt } }) => ({ tenantId, id, receivedAt })),
        )
      return { kept: letters.filter((_, i) => !are[i]), suppressed }
    },
    async changes(transaction, changes) {
      const are = await among(
        transaction,
        changes.map(change => ({ tenantId: change.entry.tenantId, identities: () => identitiesIn(change) })),
      )
      if (!are.includes(true)) return changes
      const suppressed = changes.filter((_, i) => are[i])
      await note(
        transaction,
        'records',
        suppressed.map(({ entry }) => entry),
      )
      return changes.map((change, i) => (are[i] ? nameless(change) : change))
    },
  }
}

function identitiesIn({ work }: Change): Identity[] {
  if (work.op !== 'write') return []
  if (work.entityType === 'order') return identitiesOfOrder(work.data)
  return work.entityType === 'contact' ? identitiesOfContact(work.id, work.data) : []
}

function nameless({ entry, work }: Change): Change | null {
  return work.op === 'write' && work.entityType === 'order' ? { entry, work: namelessOrder(work) } : null
}
