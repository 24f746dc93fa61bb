import { accountsOfPeople } from '../../store/billing/acquisitions.ts'
import type { PeopleListener } from '../identity/people.ts'
import { deriveAccounts } from './accounts.ts'

/** What is learnt of people may tell where their accounts came from: in the transaction that learns it. */
export function accountAttribution(): PeopleListener {
  return async (transaction, people) => {
    const accounts = await accountsOfPeople(transaction.client, people)
    await deriveAccounts(transaction, accounts, { isPersonNews: true })
  }
}
