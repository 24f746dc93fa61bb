import type pg from 'pg'
import { candidateIds, erasedAccountName, stripNamespaces, writtenId } from '../domain/billing/namespace.ts'
import { parseEmail } from '../domain/identity/identifiers.ts'
import { Timestamp } from '../domain/shapes.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { mergeAccounts, unmergeAccounts } from '../pipeline/billing/merge.ts'
import { type Db, databaseNow, inTransaction } from '../postgres/database.ts'
import { lockLedger } from '../postgres/locks.ts'
import { type AccountMerge, findKnownAccounts, listMerges } from '../store/billing/merges.ts'
import { listNamespaces } from '../store/billing/versions.ts'
import { type Actor, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError } from './error.ts'

/** Billing accounts that are one customer. */
export function accountAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    /** The latest merge first. */
    async list(idOrName: string): Promise<MergedAccount[]> {
      const { id } = await requireTenant(pool, actor, idOrName)
      return (await listMerges(pool, id)).map(mergeView)
    },
    /** Reports show the subscriptions and invoices of `account` as those of `into`. Merging again changes nothing. */
    async merge(idOrName: string, named: { account: string; into: string }): Promise<MergedAccount> {
      const { id } = await requireTenant(pool, actor, idOrName)
      return inTransaction(pool, async client => {
        await lockLedger(client, id)
        const account = await requireAccount(client, id, named.account)
        const into = await requireAccount(client, id, named.into)
        const merges = await listMerges(client, id)
        const known = merges.find(merge => merge.account === account)
        if (known?.into === into) return mergeView(known)
        requireMergeable(merges, { account, into })
        const transaction = { client, now: await databaseNow(client) }
        await mergeAccounts(transaction, id, { account, into, mergedBy: actor.name })
        await recordChange(client, actor, { ...changeOf(id, 'account.merge', { account, into }), before: null })
        return mergeView((await listMerges(client, id)).find(merge => merge.account === account)!)
      })
    },
    async unmerge(idOrName: string, name: string): Promise<MergedAccount> {
      const { id } = await requireTenant(pool, actor, idOrName)
      return inTransaction(pool, async client => {
        await lockLedger(client, id)
        const names = candidateIds(name, await listNamespaces(client, id))
        const [merge, ...others] = (await listMerges(client, id)).filter(({ account }) => names.includes(account))
        if (merge === undefined)
          throw new AdminError('not_found', 'account_not_merged', `The account ${JSON.stringify(name)} is not merged.`)
        if (others.length > 0) throw ambiguousAccount(name, [merge, ...others])
        await unmergeAccounts({ client, now: await databaseNow(client) }, id, merge)
        const { after, ...change } = changeOf(id, 'account.unmerge', merge)
        await recordChange(client, actor, { ...change, before: after, after: null })
        return mergeView(merge)
      })
    },
  }
}

async function requireAccount(db: Db, tenantId: number, name: string): Promise<string> {
  const names = [...new Set(candidateIds(name, await listNamespaces(db, tenantId)))]
  const [known, ...others] = await findKnownAccounts(db, tenantId, names)
  if (known === undefined) {
    const message = `No such account: ${quote(name)}. Use the id of a customer that has a subscription or an invoice.`
    throw new AdminError('not_found', 'account_not_found', message)
  }
  if (others.length > 0) throw ambiguousAccount(name, [known, ...others])
  if (known.isTest) {
    const message = `${JSON.stringify(name)} is a test mode account. Reports do not include test data. Use a live mode account.`
    throw new AdminError('conflict', 'account_in_test_mode', message)
  }
  return known.account
}

function ambiguousAccount(name: string, accounts: { account: string }[]): AdminError {
  const written = accounts.map(({ account }) => JSON.stringify(writtenId(account))).join(', ')
  return new AdminError(
    'conflict',
    'ambiguous_account',
    `${JSON.stringify(name)} is an id in several namespaces. Use one of ${written}.`,
  )
}

/** A merge has one step, so that its result does not depend on the order of merges. */
function requireMergeable(merges: AccountMerge[], { account, into }: { account: string; into: string }): void {
  const text = (name: string) => JSON.stringify(writtenId(name))
  if (account === into) {
    const message = `${text(account)} cannot be merged into itself. Specify two different accounts.`
    throw new AdminError('conflict', 'same_account', message)
  }
  const outer = merges.find(merge => merge.account === account)
  if (outer) {
    const message = `${text(account)} is already merged into ${text(outer.into)}. Unmerge it first.`
    throw new AdminError('conflict', 'account_merged', message)
  }
  const target = merges.find(merge => merge.account === into)
  if (target) {
    const message = `${text(into)} is itself merged into ${text(target.into)}. Merge into ${text(target.into)}, or unmerge ${text(into)} first.`
    throw new AdminError('conflict', 'account_merged', message)
  }
  const inner = merges.filter(merge => merge.into === account)
  if (inner.length > 0) {
    const names = inner.map(merge => text(merge.account)).join(', ')
    const message = `Other accounts are merged into ${text(account)}: ${names}. Unmerge them first, then merge each into ${text(into)}.`
    throw new AdminError('conflict', 'account_merged', message)
  }
}

function changeOf(tenantId: number, action: string, { account, into }: { account: string; into: string }) {
  // An e-mail address is recorded under the name that an erasure gives the account.
  const recorded = (name: string) =>
    parseEmail(stripNamespaces(name)) === null ? writtenId(name) : erasedAccountName(tenantId, name)
  return {
    ...{ action, target: recorded(account), tenantId },
    after: { account: recorded(account), into: recorded(into) },
  }
}

function mergeView({ account, into, mergedAt, mergedBy }: AccountMerge): MergedAccount {
  return {
    account: writtenId(account),
    into: writtenId(into),
    merged_at: mergedAt.toISOString(),
    merged_by: mergedBy,
  }
}

const AccountName = Type.String({
  minLength: 1,
  maxLength: 600,
  description: 'The id of a customer, or `namespace:id` if several namespaces contain the id',
  examples: ['cus_42'],
})

export const MergeBody = { account: AccountName, into: AccountName }

export const MergedAccount = Type.Object(
  {
    account: Type.String(),
    into: Type.String({ description: 'The account that reports show' }),
    merged_at: Timestamp,
    merged_by: Type.String(),
  },
  {
    title: 'MergedAccount',
    description: 'An account that reports show as another one',
    examples: [{ account: 'cus_43', into: 'cus_42', merged_at: '2026-11-03T09:00:00.000Z', merged_by: 'cli:ada' }],
  },
)

export type MergedAccount = Static<typeof MergedAccount>
