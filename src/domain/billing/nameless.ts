import { emailOf } from '../identity/identity.ts'
import { erasedName } from './accounts.ts'
import { withoutNamespaces } from './namespace.ts'
import type { BillingChange, SubscriptionFacts, Term } from './types.ts'

/** What a billing event says, without the name of whom it is about: the ledger goes on as after an erasure. */
export function namelessChange(tenantId: number, change: BillingChange): BillingChange {
  const customer = <Id extends string | null>(id: Id) =>
    (id !== null && emailOf(withoutNamespaces(id)) !== null ? erasedName(tenantId, id) : id) as Id
  const paid = <Paid extends { customer: string | null }>(told: Paid): Paid => ({
    ...told,
    customer: customer(told.customer),
  })
  const version = <Named extends Pick<SubscriptionFacts, 'customer' | 'customerName' | 'customerEmail'>>(
    told: Named,
  ): Named => ({ ...paid(told), customerName: null, customerEmail: null })
  switch (change.kind) {
    case 'subscription': {
      const { before: _, ...told } = change.version
      return {
        ...change,
        version: {
          ...version(told),
          ...(change.version.before && { before: factsOnly(change.version.before) }),
        },
        ...(change.terms && { terms: change.terms.map(namelessTerm) }),
      }
    }
    case 'invoice':
      return {
        ...change,
        version: version(change.version),
        ...(change.payments && { payments: change.payments.map(paid) }),
      }
    case 'cash':
      return { ...change, payments: change.payments.map(paid), refunds: change.refunds.map(paid) }
    case 'terms':
      return { ...change, terms: change.terms.map(namelessTerm) }
  }
}

function factsOnly(before: Partial<SubscriptionFacts>): Partial<SubscriptionFacts> {
  const { customer: _, customerName: _name, customerEmail: _email, ...facts } = before
  return facts
}

function namelessTerm(term: Term): Term {
  const { name: _, email: _email, ...facts } = term
  return facts
}
