import { DEFAULT_CONVERSION_TYPES } from '../../domain/conversions/conversions.ts'
import { findTenantById } from '../../store/tenants/tenants.ts'
import { openMemory } from '../memory.ts'
import type { Transaction } from '../unit.ts'

/** Which event types a tenant counts as conversions. */
export type ConversionTypes = (transaction: Transaction, tenantId: number) => Promise<ReadonlySet<string>>

const DEFAULT: ReadonlySet<string> = new Set(DEFAULT_CONVERSION_TYPES)

export function openConversionTypes(): ConversionTypes {
  const memory = openMemory(() => new Map<number, ReadonlySet<string>>())

  return async (transaction, tenantId) => {
    const known = memory(transaction)
    const before = known.get(tenantId)
    if (before) return before
    // On the transaction's own connection: a worker that waits for a second one could wait for ever.
    const own = (await findTenantById(transaction.client, tenantId))?.conversionTypes
    const types = own ? new Set(own) : DEFAULT
    known.set(tenantId, types)
    return types
  }
}
