import type pg from 'pg'
import { RestartTransaction } from '../postgres/database.ts'
import {
  lockTenants,
  shareTenants,
  TENANT_LOCKS,
  tryLockTenants,
  tryShareTenants,
} from '../postgres/locks.ts'
import type { Transaction, Turns } from './unit.ts'

// After somebody had to begin again, this many transactions wait for their turn before they make anything.
const WAIT_FIRST_RUNS = 64

type TurnKeeper = {
  /** For a transaction with entries of these tenants. */
  turnsOf(client: pg.PoolClient, tenantIds: ReadonlySet<number>): Turns
  /** For what two transactions wait in a circle over: the next ones wait for their turn before they make anything. */
  contend(tenantIds: Iterable<number>): void
}

/** For the workers of one process: which tenants are contended is remembered from one transaction to the next. */
export function openTurns(): TurnKeeper {
  const contended = new Map<number, number>()

  function contend(tenantIds: Iterable<number>): void {
    for (const tenantId of tenantIds) contended.set(tenantId, WAIT_FIRST_RUNS)
  }

  function turnsOf(client: pg.PoolClient, ofTransaction: ReadonlySet<number>): Turns {
    // Stays set when a part is undone: trying where waiting would do is only slower.
    let hasBegun = false

    /**
     * Waits for every contended tenant that the transaction has entries of, whichever it comes to first: one that it came to later
     * it could only try, and while others take turns at it, it would begin again for ever (five minutes in an hour of torture).
     * False where none is.
     */
    async function begin(): Promise<boolean> {
      if (hasBegun) return true
      hasBegun = true
      const waitedFor = [...ofTransaction].filter(tenantId => contended.has(tenantId))
      if (waitedFor.length === 0) return false
      await lockTenants(client, TENANT_LOCKS.profiles, waitedFor)
      for (const tenantId of waitedFor) countDown(contended, tenantId)
      return true
    }

    function giveWay(tenantIds: Iterable<number>): never {
      contend(tenantIds)
      throw new RestartTransaction('Somebody else is saying who is who')
    }

    return {
      async begin() {
        await begin()
      },
      async take(tenantIds) {
        if (!(await begin())) await lockTenants(client, TENANT_LOCKS.profiles, tenantIds)
        else if (!(await tryLockTenants(client, TENANT_LOCKS.profiles, tenantIds))) giveWay(tenantIds)
      },
      async share(tenantIds) {
        if (!(await begin())) await shareTenants(client, TENANT_LOCKS.profiles, tenantIds)
        else if (!(await tryShareTenants(client, TENANT_LOCKS.profiles, tenantIds))) giveWay(tenantIds)
      },
    }
  }

  return { turnsOf, contend }
}

function countDown(contended: Map<number, number>, tenantId: number): void {
  const left = (contended.get(tenantId) ?? 0) - 1
  if (left > 0) contended.set(tenantId, left)
  else contended.delete(tenantId)
}

export async function beginTurn({ turns }: Transaction): Promise<void> {
  await turns?.begin()
}

/** Returns when nobody else says who is who in these tenants, until the transaction ends. */
export async function takeTurn({ client, turns }: Transaction, tenantIds: Iterable<number>): Promise<void> {
  if (turns) await turns.take(tenantIds)
  else await lockTenants(client, TENANT_LOCKS.profiles, tenantIds)
}

/** The same, together with others who only read it. */
export async function shareTurn({ client, turns }: Transaction, tenantIds: Iterable<number>): Promise<void> {
  if (turns) await turns.share(tenantIds)
  else await shareTenants(client, TENANT_LOCKS.profiles, tenantIds)
}
