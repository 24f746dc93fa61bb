import type pg from 'pg'
import { candidateIds, erasedAccountName } from '../../domain/billing/namespace.ts'
import { type Db, inTransaction } from '../../postgres/database.ts'
import { lockLedger } from '../../postgres/locks.ts'
import { lockAccounts } from '../../store/billing/accounts.ts'
import { lockInvoices } from '../../store/billing/cash.ts'
import { eraseKeptNames, renameKept } from '../../store/billing/closings.ts'
import {
  type ErasedPerson,
  eraseCustomers,
  eraseNames,
  forgetPeople,
  listAccounts,
  listInvoices,
  listMergeTargets,
  listSubscriptions,
  renameAccount,
} from '../../store/billing/erasure.ts'
import { lockSubscriptions } from '../../store/billing/subscriptions.ts'
import { listNamespaces } from '../../store/billing/versions.ts'
import { anonymizeMovementMessages, deleteDigestMessages } from '../../store/destinations/outbox.ts'

/** A person's objects in the ledger. */
export async function findBilling(db: Db, tenantId: number, named: ErasedPerson) {
  const namespaces = await listNamespaces(db, tenantId)
  const person = {
    customers: named.customers.flatMap(id => candidateIds(id, namespaces)),
    // an account may be named by the e-mail address, in any namespace
    emails: named.emails.flatMap(email => candidateIds(email, namespaces).map(id => id.toLowerCase())),
  }
  const accounts = await listAccounts(db, tenantId, person)
  const subscriptions = await listSubscriptions(db, tenantId, accounts)
  const invoices = await listInvoices(db, tenantId, person, subscriptions)
  return { person, accounts, subscriptions, invoices }
}

/**
 * Removes a person's name and e-mail address from the ledger. Amounts stay. An account named by the e-mail address gets an
 * anonymous name. Returns how many accounts and invoices changed.
 */
export function anonymizeBilling(pool: pg.Pool, tenantId: number, named: ErasedPerson): Promise<number> {
  const keys = (ids: string[]) => ids.map(id => ({ tenantId, id }))
  return inTransaction(pool, async client => {
    // accounts are not merged meanwhile
    await lockLedger(client, tenantId)
    const { person, accounts, subscriptions, invoices } = await findBilling(client, tenantId, named)
    // the same lock order as for billing events
    if (subscriptions.length > 0) await lockSubscriptions(client, keys(subscriptions), [])
    if (accounts.length > 0) await lockAccounts(client, keys(accounts))
    if (invoices.length > 0) await lockInvoices(client, keys(invoices))
    const customers = [...person.customers, ...accounts]
    const targets = await listMergeTargets(client, tenantId, accounts)
    const emails = new Set(person.emails)
    const renames: { account: string; newName: string; subscriptions: string[]; kept: string[] }[] = []
    for (const account of accounts.filter(name => emails.has(name.toLowerCase()))) {
      const own = await listSubscriptions(client, tenantId, [account])
      renames.push({ account, newName: erasedAccountName(tenantId, account), subscriptions: own, kept: targets })
    }
    await eraseNames(client, tenantId, { customers, subscriptions, invoices })
    // accounts that were kept are found by their e-mail addresses, so they are renamed before these are removed
    for (const rename of renames) await renameKept(client, tenantId, rename)
    const newName = (account: string) => renames.find(rename => rename.account === account)?.newName ?? account
    const kept = [...accounts, ...targets].map(newName)
    await eraseKeptNames(client, tenantId, { kept, accounts: accounts.map(newName), subscriptions })
    await eraseCustomers(client, tenantId, { ...person, customers })
    await forgetPeople(client, tenantId, accounts)
    await anonymizeMovementMessages(client, tenantId, { accounts: [...accounts, ...targets], emails: person.emails })
    if (accounts.length > 0) await deleteDigestMessages(client, tenantId)
    for (const rename of renames) await renameAccount(client, tenantId, rename)
    return accounts.length + invoices.length
  })
}
