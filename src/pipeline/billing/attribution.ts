import type { NodeKey } from '../../domain/identity/identity.ts'
import { accountsOfPeople } from '../../store/billing/acquisitions.ts'
import type { Deriving } from '../unit.ts'
import { deriveAccounts } from './accounts.ts'

/**
 * Derives the accounts of these people again: a merge or an earlier touch may change where the accounts came from. The
 * transaction holds the profile lock, unless no other transaction can see these people yet.
 */
export async function attributeAccounts(transaction: Deriving, people: NodeKey[]): Promise<void> {
  const accounts = await accountsOfPeople(transaction.client, people)
  await deriveAccounts(transaction, accounts, { isPersonNews: true })
}
