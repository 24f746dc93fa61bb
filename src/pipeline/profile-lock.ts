import type pg from 'pg'
import { RestartTransaction } from '../postgres/database.ts'
import { lockTenants, shareTenants, TENANT_LOCKS, tryLockTenants, tryShareTenants } from '../postgres/locks.ts'
import type { ProfileLock, Transaction } from './unit.ts'

// After a conflict over a tenant's profile lock, this many transactions wait for the lock before they write anything.
const WAIT_FIRST_RUNS = 64

type ProfileLocks = {
  /**
   * For a transaction with entries of these tenants. `isSkipped` is called with tenants whose lock another transaction
   * holds. If it returns true, the transaction restarts without their entries; otherwise it waits.
   */
  lockFor(
    client: pg.PoolClient,
    tenantIds: ReadonlySet<number>,
    isSkipped?: (tenantIds: number[]) => boolean,
  ): ProfileLock
  /** Call after a deadlock: the next transactions of these tenants wait for the lock before they write anything. */
  markContended(tenantIds: Iterable<number>): void
}

/** For the workers of one process. Remembers between transactions which tenants are contended. */
export function openProfileLocks(): ProfileLocks {
  const contended = new Map<number, number>()

  function markContended(tenantIds: Iterable<number>): void {
    for (const tenantId of tenantIds) contended.set(tenantId, WAIT_FIRST_RUNS)
  }

  function lockFor(
    client: pg.PoolClient,
    ofTransaction: ReadonlySet<number>,
    isSkipped: (tenantIds: number[]) => boolean = () => false,
  ): ProfileLock {
    // Stays set when isolation undoes a part. Trying instead of waiting is then only slower.
    let isPrepared = false

    /**
     * Waits for every contended tenant of the transaction, whichever it reaches first. A lock that it needs later it could
     * only try, and it would restart again and again while others use the tenant (five minutes in an hour of torture).
     * Returns false if the transaction holds no lock yet.
     */
    async function prepare(): Promise<boolean> {
      if (isPrepared) return true
      isPrepared = true
      const waitedFor = [...ofTransaction].filter(tenantId => contended.has(tenantId))
      if (waitedFor.length === 0) return false
      await waitOrSkip(waitedFor)
      for (const tenantId of waitedFor) countDown(contended, tenantId)
      return true
    }

    function restart(tenantIds: Iterable<number>): never {
      if (!isSkipped([...tenantIds])) markContended(tenantIds)
      throw new RestartTransaction('profile lock is held by another transaction')
    }

    async function waitOrSkip(tenantIds: Iterable<number>): Promise<void> {
      if (await tryLockTenants(client, TENANT_LOCKS.profiles, tenantIds)) return
      if (isSkipped([...tenantIds])) throw new RestartTransaction('profiles are being changed by another transaction')
      await lockTenants(client, TENANT_LOCKS.profiles, tenantIds)
    }

    return {
      async prepare() {
        await prepare()
      },
      async take(tenantIds) {
        if (!(await prepare())) await waitOrSkip(tenantIds)
        else if (!(await tryLockTenants(client, TENANT_LOCKS.profiles, tenantIds))) restart(tenantIds)
      },
      async share(tenantIds) {
        if (!(await prepare())) await shareTenants(client, TENANT_LOCKS.profiles, tenantIds)
        else if (!(await tryShareTenants(client, TENANT_LOCKS.profiles, tenantIds))) restart(tenantIds)
      },
    }
  }

  return { lockFor, markContended }
}

function countDown(contended: Map<number, number>, tenantId: number): void {
  const left = (contended.get(tenantId) ?? 0) - 1
  if (left > 0) contended.set(tenantId, left)
  else contended.delete(tenantId)
}

export async function prepareProfileLock({ profileLock }: Transaction): Promise<void> {
  await profileLock?.prepare()
}

/** Holds the profile lock of these tenants until the transaction ends. */
export async function takeProfileLock(
  { client, profileLock }: Transaction,
  tenantIds: Iterable<number>,
): Promise<void> {
  if (profileLock) await profileLock.take(tenantIds)
  else await lockTenants(client, TENANT_LOCKS.profiles, tenantIds)
}

/** Shares the profile lock with other transactions that only read profiles. */
export async function shareProfileLock(
  { client, profileLock }: Transaction,
  tenantIds: Iterable<number>,
): Promise<void> {
  if (profileLock) await profileLock.share(tenantIds)
  else await shareTenants(client, TENANT_LOCKS.profiles, tenantIds)
}
