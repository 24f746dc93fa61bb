import {
  anonymizeOrder,
  entryIdentifiers,
  findMentions,
  hashIdentifier,
  hashIdentifiers,
  isVerifiedEntry,
} from '../../domain/identity/erasure.ts'
import { contactIdentifiers, type Identifier, orderIdentifiers, parseEmail } from '../../domain/identity/identifiers.ts'
import type { NewDeadLetter } from '../../store/entries/dead-letters.ts'
import {
  countSuppressed,
  deleteFromLog,
  findSuppressed,
  findSuppressingTenants,
  insertLearned,
  type LearnedIdentifier,
  type SuppressionCount,
} from '../../store/identity/suppressions.ts'
import type { Change } from '../records/records.ts'
import { openMemory, type Transaction } from '../unit.ts'

/** Finds events, records and dead letters of suppressed people: erased people who must not be recorded again. */
export type Suppressions = {
  /** Whether one of these tenants has suppressed anyone. */
  isNeeded(transaction: Transaction, tenantIds: Set<number>): Promise<boolean>
  /** Whether each item belongs to a suppressed person, and the identifiers learned. Ordered: a later item may have only a learned one. */
  among(transaction: Transaction, things: Naming[]): Promise<{ are: boolean[]; learned: LearnedIdentifier[] }>
  /** Drops contacts of suppressed people (null) and removes identifiers from their orders. Keeps all other changes. */
  changes(transaction: Transaction, changes: Change[]): Promise<(Change | null)[]>
  /** Separates the dead letters that mention a suppressed person. They are not kept. */
  letters(transaction: Transaction, letters: NewDeadLetter[]): Promise<SortedLetters>
}

/** `isLearned`: if one of its identifiers is suppressed, others are, too. Of unverified input only visitor ids. */
type Naming = { tenantId: number; identities: () => Identifier[]; isVerified: boolean; isLearned: boolean }

type SortedLetters = { kept: NewDeadLetter[]; suppressed: NewDeadLetter[] }

type Noted = { things: { tenantId: number; id: string; receivedAt: Date }[]; learned: LearnedIdentifier[] }

/** For a tenant without suppressions, the check costs only a look at the memory. */
export function openSuppressions(): Suppressions {
  const memory = openMemory(() => new Map<number, boolean>())

  async function suppressing(transaction: Transaction, tenantIds: Set<number>): Promise<Map<number, boolean>> {
    const known = memory(transaction)
    const unknown = [...tenantIds].filter(id => !known.has(id))
    if (unknown.length === 0) return known
    const found = await findSuppressingTenants(transaction.client, unknown)
    for (const id of unknown) known.set(id, found.has(id))
    return known
  }

  const among: Suppressions['among'] = async (transaction, things) => {
    const known = await suppressing(transaction, new Set(things.map(({ tenantId }) => tenantId)))
    const names = things.map(({ tenantId, identities }) => (known.get(tenantId) ? identities() : []))
    const keys = things.map(({ tenantId }, i) => hashIdentifiers(tenantId, names[i]!).map(hash => ({ tenantId, hash })))
    const wanted = keys.flat()
    if (wanted.length === 0) return { are: things.map(() => false), learned: [] }
    const found = await findSuppressed(transaction.client, wanted)
    const learned: LearnedIdentifier[] = []
    /** Returns false if the identifier is already suppressed for the same input. */
    const add = (name: LearnedIdentifier): boolean => {
      const known = found.get(keyText(name))
      if (known && (name.unverifiedOnly || !known.unverifiedOnly)) return false
      found.set(keyText(name), name)
      return true
    }
    for (const name of transaction.learned?.suppressed.flatMap(noted => noted.learned) ?? []) add(name)
    const are = keys.map((own, i) => {
      const thing = things[i]!
      const matches = own
        .flatMap(key => found.get(keyText(key)) ?? [])
        .filter(({ unverifiedOnly }) => !thing.isVerified || !unverifiedOnly)
      const certain = matches.find(({ kind }) => kind !== 'visitor')
      if (certain) for (const name of learnable(thing, names[i]!, certain.erasureId)) if (add(name)) learned.push(name)
      return matches.length > 0
    })
    return { are, learned }
  }

  return {
    async isNeeded(transaction, tenantIds) {
      const known = await suppressing(transaction, tenantIds)
      return [...tenantIds].some(tenantId => known.get(tenantId))
    },
    among,
    async letters(transaction, letters) {
      // Nothing is learned from entries that are invalid or failed.
      const { are } = await among(
        transaction,
        letters.map(({ entry }) => ({
          tenantId: entry.tenantId,
          identities: () => [...entryIdentifiers(entry), ...findMentions(entry.body)],
          isVerified: isVerifiedEntry(entry),
          isLearned: false,
        })),
      )
      const suppressed = letters.filter((_, i) => are[i])
      for (const [kind, own] of Map.groupBy(suppressed, ({ entry }) => entry.kind))
        await noteSuppressed(transaction, kind === 'record' ? 'records' : 'events', {
          things: own.map(({ id, entry: { tenantId, receivedAt } }) => ({ tenantId, id, receivedAt })),
          learned: [],
        })
      return { kept: letters.filter((_, i) => !are[i]), suppressed }
    },
    async changes(transaction, changes) {
      const { are, learned } = await among(
        transaction,
        changes.map(change => ({
          tenantId: change.entry.tenantId,
          identities: () => changeIdentifiers(change),
          isVerified: true,
          isLearned: true,
        })),
      )
      if (!are.includes(true)) return changes
      const suppressed = changes.filter((_, i) => are[i])
      await noteSuppressed(transaction, 'records', { things: suppressed.map(({ entry }) => entry), learned })
      return changes.map((change, i) => (are[i] ? anonymize(change) : change))
    },
  }
}

/** Deletes suppressed items from the log, and notes them for `writeSuppressed`. */
export async function noteSuppressed(
  transaction: Transaction,
  kind: 'events' | 'records',
  { things, learned }: Noted,
): Promise<void> {
  if (things.length === 0) return
  const counts = things.map(({ tenantId }) => ({ tenantId, events: 0, records: 0, [kind]: 1 }))
  await deleteFromLog(transaction.client, things)
  transaction.learned ??= { nodes: [], touches: [], seen: [], suppressed: [] }
  transaction.learned.suppressed.push({ counts, learned })
}

/**
 * Writes the counts and the identifiers that were learned. Call it last: all transactions that suppress in a tenant wait
 * for the row of its count. A transaction that held this row and then waited for the profile lock or a subscription
 * deadlocked with those that held these and waited for the row.
 */
export async function writeSuppressed({ client, learned }: Transaction): Promise<void> {
  const noted = learned?.suppressed ?? []
  if (noted.length === 0) return
  await countSuppressed(client, sumByTenant(noted.flatMap(({ counts }) => counts)))
  const names = noted.flatMap(({ learned }) => learned)
  // After the counts, whose rows are locked: no two transactions wait for each other's identifiers.
  if (names.length > 0) await insertLearned(client, names)
}

/**
 * The further identifiers of a suppressed person, as sent by a server or a record. Anyone with a public tracking key could attach
 * another person's user id or e-mail address, so only visitor ids are learned from it, and they suppress only unverified
 * input.
 */
function learnable(
  { tenantId, isVerified, isLearned }: Naming,
  names: Identifier[],
  erasureId: string,
): LearnedIdentifier[] {
  if (!isLearned) return []
  const mayLearn = ({ kind, value }: Identifier) => isVerified || (kind === 'visitor' && parseEmail(value) === null)
  return names.filter(mayLearn).map(name => ({
    ...{ tenantId, erasureId, kind: name.kind, hash: hashIdentifier(tenantId, name), unverifiedOnly: !isVerified },
  }))
}

/** One count per tenant. */
function sumByTenant(counts: SuppressionCount[]): SuppressionCount[] {
  const sum = (own: SuppressionCount[], kind: 'events' | 'records') =>
    own.reduce((total, count) => total + count[kind], 0)
  return [...Map.groupBy(counts, ({ tenantId }) => tenantId)].map(([tenantId, own]) => ({
    ...{ tenantId, events: sum(own, 'events'), records: sum(own, 'records') },
  }))
}

const keyText = ({ tenantId, hash }: { tenantId: number; hash: Buffer }) => `${tenantId} ${hash.toString('hex')}`

function changeIdentifiers({ work }: Change): Identifier[] {
  if (work.op !== 'write') return []
  if (work.entityType === 'order') return orderIdentifiers(work.data)
  return work.entityType === 'contact' ? contactIdentifiers(work.id, work.data) : []
}

function anonymize({ entry, work }: Change): Change | null {
  return work.op === 'write' && work.entityType === 'order' ? { entry, work: anonymizeOrder(work) } : null
}
