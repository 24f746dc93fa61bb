// A simulated company that sells subscriptions. Decisions are planned for an instant, then time is advanced.
import { collecting } from './collecting.ts'
import { type JournalOptions, openJournal } from './journal.ts'
import type { Coupon, Customer, Fact, Item, Price } from './model.ts'
import { returning } from './returning.ts'
import { type Subscribing, subscribing } from './subscribing.ts'

export type Company = ReturnType<typeof openCompany>

export function openCompany(options: JournalOptions = {}) {
  const journal = openJournal(options)
  const subscriptions: Subscribing = subscribing(journal, () => invoices)
  const invoices = collecting(journal, subscriptions)
  const money = returning(journal, () => invoices)

  return {
    journal,
    subscriptions,
    invoices,
    money,
    /** Advances time. */
    runUntil: journal.runUntil,
    plan: journal.plan,
    customer(details: Partial<Customer> = {}): string {
      const id = details.id ?? journal.id('cus')
      const after: Customer = {
        name: `Customer ${id}`,
        email: `${id}@example.com`,
        country: 'DE',
        discount: null,
        balance: 0,
        currency: null,
        ...details,
        id,
        createdAt: journal.now,
        livemode: journal.livemode,
      }
      journal.customers.set(id, after)
      journal.record({ kind: 'customer', what: 'created', after, before: null })
      return id
    },
    rename(id: string, changes: Partial<Pick<Customer, 'name' | 'email'>>): void {
      const before = journal.customers.get(id)!
      const after = { ...before, ...changes }
      journal.customers.set(id, after)
      journal.record({ kind: 'customer', what: 'updated', after, before })
    },
    coupon(coupon: Coupon): void {
      if (journal.coupons.has(coupon.id)) return
      journal.coupons.set(coupon.id, coupon)
      journal.record({ kind: 'coupon', what: 'created', after: coupon })
    },
    seats(id: string, item: string, quantity: number, { prorate = true } = {}): void {
      const items = replaced(subscriptions.get(id).items, item, { quantity })
      subscriptions.changeItems(id, items, 'quantity', { prorate })
    },
    price(id: string, item: string, price: Price, { prorate = true } = {}): void {
      const { items } = subscriptions.get(id)
      const isOtherPlan = items.find(candidate => candidate.id === item)!.price.product !== price.product
      const cause = isOtherPlan ? 'plan' : 'price'
      subscriptions.changeItems(id, replaced(items, item, { price }), cause, { prorate })
    },
    addItem(id: string, price: Price, quantity = 1): void {
      const { items } = subscriptions.get(id)
      const added = [...items, subscriptions.newItem(price, quantity)]
      subscriptions.changeItems(id, added, 'item_added', { prorate: price.usage === 'licensed' })
    },
    removeItem(id: string, item: string): void {
      const left = subscriptions.get(id).items.filter(candidate => candidate.id !== item)
      subscriptions.changeItems(id, left, 'item_removed')
    },
    /** In order of occurrence. */
    facts: (): Fact[] => [...journal.facts],
  }
}

function replaced(items: Item[], id: string, changes: Partial<Item>): Item[] {
  return items.map(item => (item.id === id ? { ...item, ...changes } : item))
}
