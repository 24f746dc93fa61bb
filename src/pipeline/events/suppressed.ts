import { conversionOf } from '../../domain/conversions/conversions.ts'
import type { NormalizedEvent } from '../../domain/events/events.ts'
import { suppressibleNames } from '../../domain/identity/erasure.ts'
import type { LearnedName } from '../../store/identity/suppressions.ts'
import { applyConversions } from '../conversions/conversions.ts'
import type { ConversionTypes } from '../conversions/types.ts'
import type { Identities } from '../identity/identity.ts'
import type { Suppressions } from '../identity/suppressions.ts'
import type { Transaction, Unit } from '../unit.ts'
import type { EventListener, FreshEvent } from './fresh-event.ts'

type Options = {
  identities: Identities
  conversionTypes: ConversionTypes
  suppressions: Suppressions
  /** The ledger, which has to go on. */
  ledger: EventListener
}

type Parted = Record<'kept' | 'suppressed', Unit<NormalizedEvent>[]> & { learned: LearnedName[] }

/** Parts the events of people who are not to be recorded again from the others. */
export async function withoutSuppressed(
  suppressions: Suppressions,
  transaction: Transaction,
  units: Unit<NormalizedEvent>[],
): Promise<Parted> {
  const { are, learned } = await suppressions.among(
    transaction,
    units.map(({ entry, work }) => ({
      tenantId: entry.tenantId,
      identities: () => suppressibleNames(work),
      learned: work.trusted ? 'all' : 'browsers',
    })),
  )
  if (!are.includes(true)) return { kept: units, suppressed: [], learned }
  return { kept: units.filter((_, i) => !are[i]), suppressed: units.filter((_, i) => are[i]), learned }
}

/** As an erasure leaves it: no event, no name; what was sold and billed counts. */
export async function applySuppressed(
  { identities, conversionTypes, suppressions, ledger }: Options,
  transaction: Transaction,
  { suppressed: units, learned }: Pick<Parted, 'suppressed' | 'learned'>,
): Promise<void> {
  const events = units.map(
    ({ entry, work }): FreshEvent => ({
      tenantId: entry.tenantId,
      event: { ...work, visitor: null, sessionId: null, userId: null, previousId: null, email: null },
      node: null,
      nameless: true,
    }),
  )
  const sales = []
  for (const fresh of events) {
    const conversion = conversionOf(fresh.event, await conversionTypes(transaction, fresh.tenantId))
    if (conversion) sales.push({ ...fresh, conversion })
  }
  if (sales.length > 0) await applyConversions(transaction, identities, sales)
  await ledger(transaction, events)
  const things = units.map(({ entry, work }) => ({
    ...{ tenantId: entry.tenantId, id: work.id, receivedAt: entry.receivedAt },
  }))
  await suppressions.note(transaction, 'events', { things, learned })
}
