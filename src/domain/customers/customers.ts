/** Customers: what a list says about a person, from their sales, subscriptions, contact and touches. */

import { planName } from '../billing/account.ts'
import { normalizeCountry } from '../billing/fields.ts'
import { ownAccount, type Segment } from '../billing/timeline.ts'
import { contactFacts } from '../conversions/conversions.ts'
import type { JsonObject } from '../json/json.ts'
import { earliest, latest } from '../time.ts'
import { type ChannelRule, channelOf } from './channels.ts'

/**
 * lead: no purchase and no payment. trial: a running trial and no payment yet. active: MRR above 0. at_risk: a past-due or
 * unpaid subscription, or MRR above 0 with an overdue payment or a scheduled cancellation. churned: paid before, no MRR now.
 * buyer: purchases, but never a paid subscription.
 */
export const CUSTOMER_STATUSES = ['lead', 'trial', 'active', 'at_risk', 'churned', 'buyer'] as const
export type CustomerStatus = (typeof CUSTOMER_STATUSES)[number]

/** How long a person is in the segment `new` after the first purchase or payment. */
export const NEW_CUSTOMER_DAYS = 30

type Touch = { source: string; medium: string | null; campaign: string | null; at: Date | null }

/** What the tables say about one person. */
export type CustomerFacts = {
  firstSeenAt: Date
  lastSeenAt: Date | null
  email: string | null
  contact: { id: string; data: JsonObject; createdAt: Date } | null
  sales: { orders: number; firstAt: Date; lastAt: Date; revenue: Record<string, string> } | null
  /** The running segments of their billing accounts. */
  segments: Segment[]
  hasSubscribed: boolean
  hasTrialed: boolean
  hasPaymentIssue: boolean
  /** Null: a subscription that starts later does not count yet. */
  firstPaidAt: Date | null
  /** When a subscription changes next. */
  changesAt: Date | null
  touch: Touch | null
}

export type Customer = {
  contactId: string | null
  name: string | null
  email: string | null
  company: string | null
  country: string | null
  sortName: string
  channel: string | null
  acquiredAt: Date
  firstSeenAt: Date
  lastSeenAt: Date
  status: CustomerStatus
  customerSince: Date | null
  trialed: boolean
  orders: number
  account: string | null
  plans: string[]
  refreshAt: Date | null
  words: string[]
  /** By currency: revenue in major units, MRR in minor units. */
  amounts: { currency: string; revenue: string; mrr: number }[]
}

/** Null: the person has no purchase, no subscription and no contact. */
export function describeCustomer(facts: CustomerFacts, rules: readonly ChannelRule[]): Customer | null {
  const { contact, sales, segments, touch } = facts
  if (contact === null && sales === null && !facts.hasSubscribed) return null
  const largest = findLargest(segments)
  // the names of accounts that are merged into theirs belong to other people
  const named = findLargest(segments.filter(segment => ownAccount(segment) === segment.account)) ?? largest
  const known = contact ? contactFacts(contact.data) : null
  const name = cut(known?.name ?? named?.customerName ?? null)
  const email = cut(known?.email ?? facts.email ?? named?.customerEmail ?? null)
  const company = cut(known?.company ?? null)
  const firstSeenAt = earliest(facts.firstSeenAt, contact?.createdAt, sales?.firstAt, facts.firstPaidAt, touch?.at)!
  return {
    contactId: contact?.id ?? null,
    name,
    email,
    company,
    country: cut(normalizeCountry(textOf(contact?.data.country)) ?? largest?.country ?? null),
    sortName: (name ?? email ?? company ?? NAMELESS).toLowerCase(),
    channel: touch && channelOf(touch, rules),
    acquiredAt: touch?.at ?? firstSeenAt,
    firstSeenAt,
    lastSeenAt: latest(firstSeenAt, facts.lastSeenAt, sales?.lastAt)!,
    status: statusOf(facts),
    customerSince: earliest(facts.firstPaidAt, sales?.firstAt),
    trialed: facts.hasTrialed,
    orders: sales?.orders ?? 0,
    account: largest?.account ?? null,
    plans: plansOf(segments),
    refreshAt: facts.changesAt,
    words: wordsOf([name, company, email]),
    amounts: amountsOf(facts),
  }
}

function findLargest(segments: Segment[]): Segment | null {
  return segments.reduce<Segment | null>((best, next) => (best && best.mrr >= next.mrr ? best : next), null)
}

function statusOf({ segments, hasPaymentIssue, firstPaidAt, sales }: CustomerFacts): CustomerStatus {
  const isPaying = segments.some(({ mrr }) => mrr > 0)
  const isOverdue = segments.some(({ status }) => status === 'past_due' || status === 'unpaid')
  const isLeaving = segments.some(({ cancelling, mrr }) => cancelling && mrr > 0)
  if (isOverdue || (isPaying && (isLeaving || hasPaymentIssue))) return 'at_risk'
  if (isPaying) return 'active'
  if (firstPaidAt !== null) return 'churned'
  if (segments.some(({ status }) => status === 'trialing')) return 'trial'
  return sales === null ? 'lead' : 'buyer'
}

function amountsOf({ sales, segments }: CustomerFacts): Customer['amounts'] {
  const mrr = new Map<string, number>()
  for (const segment of segments)
    if (segment.currency !== null) mrr.set(segment.currency, (mrr.get(segment.currency) ?? 0) + segment.mrr)
  const revenue = sales?.revenue ?? {}
  return [...new Set([...Object.keys(revenue), ...mrr.keys()])].map(currency => ({
    currency,
    revenue: revenue[currency] ?? '0',
    mrr: mrr.get(currency) ?? 0,
  }))
}

const MAX_PLANS = 20

function plansOf(segments: Segment[]): string[] {
  const items = segments.filter(({ status }) => status !== 'canceled').flatMap(segment => segment.items)
  return [...new Set(items.flatMap(item => cut(planName(item)) ?? []))].slice(0, MAX_PLANS)
}

// After every other name.
const NAMELESS = '\u{10FFFF}'
// An index row has a size limit of 2.7 kB.
const MAX_TEXT = 200

function cut(text: string | null): string | null {
  return text === null || text.length <= MAX_TEXT ? text : [...text.slice(0, MAX_TEXT + 1)].slice(0, -1).join('')
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

const MAX_WORDS = 30

/** The words by which a person is found: each word, and a whole e-mail address. */
export function wordsOf(texts: (string | null)[]): string[] {
  const words = texts.flatMap(text => text?.toLowerCase().match(/[^\s,;"'()<>]+/g) ?? [])
  return [...new Set(words)].slice(0, MAX_WORDS)
}
