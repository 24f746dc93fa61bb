import type { Transaction } from '../unit.ts'

/** A person under one of the names they are known by. */
export type PersonNode = { tenantId: number; node: number }

/**
 * Hears of people about whom something was learnt: names that turned out to be one person's, or an earlier touch. The
 * transaction holds the lock on who is who (TENANT_LOCKS.profiles) unless nobody else can see these people yet.
 */
export type PeopleListener = (transaction: Transaction, people: PersonNode[]) => Promise<void>
