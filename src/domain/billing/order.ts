/**
 * Orders the versions of one object: by the source's time, then by the chain of changes in the events, then by sequence,
 * then by arrival. Equal times are common, because Stripe's times are whole seconds.
 */

import { isDeepStrictEqual } from 'node:util'
import { canonicalJson } from '../json/json.ts'
import type {
  Discount,
  InvoiceStatus,
  InvoiceVersion,
  Refund,
  SubscriptionFacts,
  SubscriptionVersion,
} from './types.ts'

const CHANGES: SubscriptionVersion['change'][] = ['created', 'updated', 'deleted']

const INVOICE_PROGRESS: InvoiceStatus[] = ['unknown', 'draft', 'open', 'uncollectible', 'paid', 'void']

/** The most versions of one instant that are searched for a chain. */
const MAX_CHAIN = 200

/** `versions`: in order of arrival. */
export function orderSubscriptions(versions: SubscriptionVersion[]): SubscriptionVersion[] {
  const sorted = withoutRepeats(versions).sort(
    (a, b) =>
      a.sourceAt - b.sourceAt ||
      CHANGES.indexOf(a.change) - CHANGES.indexOf(b.change) ||
      (a.sequence ?? -1) - (b.sequence ?? -1),
  )
  const ordered: SubscriptionVersion[] = []
  for (let i = 0; i < sorted.length; ) {
    const first = sorted[i]!
    let end = i + 1
    while (sorted[end]?.sourceAt === first.sourceAt && sorted[end]!.change === first.change) end++
    const group = end === i + 1 ? [first] : withoutEqual(sorted.slice(i, end))
    ordered.push(...(isChain(group) ? orderByChain(group, ordered.at(-1) ?? null) : group))
    i = end
  }
  return ordered
}

/** An event delivered by two endpoints, each in its API version, counts once: the version with the fewest unknown terms. */
function withoutRepeats(versions: SubscriptionVersion[]): SubscriptionVersion[] {
  const byFact = new Map<string, SubscriptionVersion>()
  const rest: SubscriptionVersion[] = []
  for (const version of versions) {
    if (version.fact === undefined) {
      rest.push(version)
      continue
    }
    const fact = `${version.fact} ${version.change}`
    const known = byFact.get(fact)
    if (!known || countUnknownTerms(version) < countUnknownTerms(known)) byFact.set(fact, version)
  }
  const kept = new Set([...rest, ...byFact.values()])
  return versions.filter(version => kept.has(version))
}

function withoutEqual<Version extends object>(versions: Version[]): Version[] {
  const byText = new Map<string, Version>()
  for (const version of versions) {
    const text = canonicalJson({ ...version, eventId: null })
    if (!byText.has(text)) byText.set(text, version)
  }
  return [...byText.values()]
}

function countUnknownTerms({ discounts, items }: SubscriptionVersion): number {
  const all = [...discounts, ...items.flatMap(item => item.discounts)]
  return all.filter(({ percentOff, amountOff }) => percentOff === null && amountOff === null).length
}

function isChain(group: SubscriptionVersion[]): boolean {
  return group.length > 1 && group.length <= MAX_CHAIN && group.some(version => version.before)
}

/** The states before and after a change, reduced to the fields that all API versions share. */
type Link = {
  version: SubscriptionVersion
  before: string | null
  after: string
  /** The state before, with all fields of its API version. */
  exactlyBefore: string | null
}

/** Puts each version after the one whose result it changed, beginning with the state before all of them. */
function orderByChain(group: SubscriptionVersion[], previous: SubscriptionVersion | null): SubscriptionVersion[] {
  let rest = group.map((version): Link => {
    const before = version.before ? { ...version, ...version.before } : null
    return {
      version,
      before: before && comparableText(before),
      after: comparableText(version),
      exactlyBefore: before && stateText(before),
    }
  })
  const ordered: SubscriptionVersion[] = []
  let last = previous
  while (rest.length > 0) {
    const next =
      (last && following(rest, last)) ?? (last && partlyFollowing(rest, last)) ?? firstOfChain(rest) ?? rest[0]!
    ordered.push(next.version)
    last = next.version
    rest = rest.filter(link => link !== next)
  }
  return ordered
}

/**
 * First a version that repeats the current state. Then, of several that follow it, one with a successor: a version
 * without a successor comes last.
 */
function following(rest: Link[], last: SubscriptionVersion): Link | undefined {
  const [state, exactState] = [comparableText(last), stateText(last)]
  const repeatsState = (link: Link) => link.after === state && (link.before === null || link.before === state)
  const hasSuccessor = (link: Link) => rest.some(other => other !== link && other.before === link.after)
  const links = rest.filter(link => link.before === state)
  const first = (found: Link[]) => found.find(link => link.exactlyBefore === exactState) ?? found[0]
  return first(rest.filter(repeatsState)) ?? first(links.filter(hasSuccessor)) ?? first(links)
}

/** A version whose changed fields had their previous values in `last`, even if other fields differ. */
function partlyFollowing(rest: Link[], last: SubscriptionVersion): Link | undefined {
  return rest.find(({ version }) => version.before && hadBefore(version, last))
}

function firstOfChain(rest: Link[]): Link | undefined {
  return rest.find(link => !rest.some(other => other !== link && other.after === link.before))
}

function hadBefore({ before }: SubscriptionVersion, state: SubscriptionVersion): boolean {
  const [was, is] = [comparable(before!), comparable(state) as Partial<SubscriptionFacts>]
  const changed = Object.entries(was) as [keyof SubscriptionFacts, unknown][]
  return changed.length > 0 && changed.every(([name, value]) => isDeepStrictEqual(is[name] ?? null, value))
}

function stateText(version: SubscriptionVersion): string {
  const { id: _id, sourceAt: _at, change: _change, fact: _fact, sequence: _n, ...rest } = version
  const { before: _before, eventId: _event, ...facts } = rest
  // an omitted field equals null
  return canonicalJson(Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null)))
}

function comparableText(version: SubscriptionVersion): string {
  return stateText(comparable(version))
}

/** Reduces facts to what all API versions share: only newer ones have item periods, and discounts as ids. */
function comparable<Facts extends Partial<SubscriptionFacts>>(facts: Facts): Facts {
  const byId = (discounts: Discount[]) =>
    discounts.map(discount => (discount.id === undefined ? discount : { id: discount.id }))
  return {
    ...facts,
    ...(facts.discounts && { discounts: byId(facts.discounts) }),
    ...(facts.items && {
      items: facts.items.map(item => ({
        ...item,
        ...{ currentPeriodStart: null, currentPeriodEnd: null, discounts: byId(item.discounts) },
      })),
    }),
  } as Facts
}

/** `versions`: in order of arrival. */
export function orderInvoices(versions: InvoiceVersion[]): InvoiceVersion[] {
  const ordered = [...versions].sort(compareInvoices)
  const hasTies = ordered.some(({ sourceAt }, i) => ordered[i + 1]?.sourceAt === sourceAt)
  return hasTies ? withoutEqual(ordered) : ordered
}

function compareInvoices(a: InvoiceVersion, b: InvoiceVersion): number {
  return (
    a.sourceAt - b.sourceAt ||
    (a.sequence ?? -1) - (b.sequence ?? -1) ||
    INVOICE_PROGRESS.indexOf(a.status) - INVOICE_PROGRESS.indexOf(b.status) ||
    a.attemptCount - b.attemptCount ||
    (a.amountPaid ?? 0) - (b.amountPaid ?? 0) ||
    failureRank(a) - failureRank(b)
  )
}

/** Stripe sends "failed" and "action required" together; the second is more specific. */
function failureRank(invoice: InvoiceVersion): number {
  return invoice.failure === null ? 0 : invoice.failure.kind === 'payment_failed' ? 1 : 2
}

export function compareRefunds(a: Refund, b: Refund): number {
  return a.sourceAt - b.sourceAt || Number(b.counts) - Number(a.counts) || compareContent(a, b)
}

function compareContent(a: object, b: object): number {
  const left = canonicalJson(a)
  const right = canonicalJson(b)
  return left < right ? -1 : left > right ? 1 : 0
}
