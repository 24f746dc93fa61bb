import { DEFAULT_CONVERSION_TYPES } from '../../domain/conversions/conversions.ts'
import { findTenantById } from '../../store/tenants/tenants.ts'
import type { Transaction } from '../unit.ts'

/** Which event types each tenant counts as conversions, remembered until the configuration changes. */
export type ConversionTypes = {
  of(transaction: Transaction, tenantId: number): Promise<ReadonlySet<string>>
  forget(): void
}

const DEFAULT: ReadonlySet<string> = new Set(DEFAULT_CONVERSION_TYPES)

export function openConversionTypes(): ConversionTypes {
  let known = new Map<number, ReadonlySet<string>>()

  return {
    async of({ client }, tenantId) {
      const remembered = known
      const before = remembered.get(tenantId)
      if (before) return before
      // On the transaction's own connection: a worker that waits for a second one could wait for ever.
      const own = (await findTenantById(client, tenantId))?.conversionTypes
      const types = own ? new Set(own) : DEFAULT
      remembered.set(tenantId, types)
      return types
    },
    forget() {
      // Another map: an answer from before a change must not outlive the change.
      known = new Map()
    },
  }
}
