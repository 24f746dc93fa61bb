import {
  type AccountMerge,
  deleteMerge,
  insertMerge,
  noteCustomers,
  subscriptionsToMerge,
} from '../../store/billing/merges.ts'
import type { Deriving } from '../unit.ts'
import { applySubscriptions } from './subscriptions.ts'

const DERIVED_AT_ONCE = 500

/** From now on, the subscriptions of `account` belong to `into`, also in the past. The caller holds the locks of `lockLedger`. */
export async function mergeAccounts(
  transaction: Deriving,
  tenantId: number,
  merge: Omit<AccountMerge, 'mergedAt'>,
): Promise<void> {
  await insertMerge(transaction.client, tenantId, merge)
  await deriveAgain(transaction, tenantId, merge.account)
  await noteCustomers(transaction.client, tenantId, merge)
}

/** Undoes a merge. The caller holds the locks of `lockLedger`. */
export async function unmergeAccounts(
  transaction: Deriving,
  tenantId: number,
  merge: Pick<AccountMerge, 'account' | 'into'>,
): Promise<void> {
  await deleteMerge(transaction.client, tenantId, merge.account)
  await deriveAgain(transaction, tenantId, merge.into)
  await noteCustomers(transaction.client, tenantId, merge)
}

async function deriveAgain(transaction: Deriving, tenantId: number, account: string): Promise<void> {
  const keys = await subscriptionsToMerge(transaction.client, tenantId, account)
  for (let i = 0; i < keys.length; i += DERIVED_AT_ONCE) {
    const portion = keys.slice(i, i + DERIVED_AT_ONCE)
    await applySubscriptions(transaction, portion, { named: [], nodes: new Map(), isRestated: true })
  }
}
