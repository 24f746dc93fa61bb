import type { PersonNode } from '../../domain/identity/identity.ts'
import type { Transaction } from '../unit.ts'

/**
 * Hears of people about whom something was learnt: names that turned out to be one person's, or an earlier touch. The
 * transaction holds the lock on who is who (TENANT_LOCKS.profiles) unless nobody else can see these people yet.
 */
export type PeopleListener = (transaction: Transaction, people: PersonNode[]) => Promise<void>
