import type pg from 'pg'
import { describeCustomer } from '../domain/customers/customers.ts'
import { inTransaction } from '../postgres/database.ts'
import { LOCKS, sharePeople, tryLock } from '../postgres/locks.ts'
import { newestPolicy } from '../store/billing/policies.ts'
import { isAnyCustomerOutdated, readCustomerFacts, takeOutdated, writeCustomers } from '../store/customers/refresh.ts'
import type { Job } from './jobs.ts'

const PEOPLE_AT_A_TIME = 1_000

/** Computes the rows of customers whose data changed. */
export function customerJob(pool: pg.Pool, now: () => Date): Job {
  return {
    name: 'customers',
    everyMs: 500,
    async run() {
      while ((await isAnyCustomerOutdated(pool, now())) && (await refreshCustomers(pool, now())));
    },
  }
}

/** Returns whether there may be more. */
async function refreshCustomers(pool: pg.Pool, now: Date): Promise<boolean> {
  return inTransaction(pool, async client => {
    // One node at a time: of two, the one that read earlier could write later.
    if (!(await tryLock(client, LOCKS.customers))) return false
    const { people, mayBeMore } = await takeOutdated(client, now, PEOPLE_AT_A_TIME)
    if (people.length === 0) return mayBeMore
    const tenantIds = new Set(people.map(({ tenantId }) => tenantId))
    // The data of a person must not be written again after an erasure has deleted it.
    await sharePeople(client, tenantIds)
    const rules = new Map<number, Awaited<ReturnType<typeof newestPolicy>>>()
    for (const tenantId of tenantIds) rules.set(tenantId, await newestPolicy(client, tenantId))
    const found = new Map(
      (await readCustomerFacts(client, people, now)).map(({ tenantId, profile, facts }) => [
        `${tenantId} ${profile}`,
        describeCustomer(facts, rules.get(tenantId)!.channels),
      ]),
    )
    await writeCustomers(
      client,
      people.map(person => ({ ...person, customer: found.get(`${person.tenantId} ${person.profile}`) ?? null })),
    )
    return mayBeMore
  })
}
