/**
 * The order of what sources said about one thing: by their own time; within one time (Stripe's have whole seconds, so
 * ties are everyday) by the chain of changes that the events themselves tell, by sequence, and at last by arrival.
 */

import { isDeepStrictEqual } from 'node:util'
import { contentText } from './content.ts'
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

/** A chain is looked for among so many at most: nobody changes a subscription more often in a second. */
const LONGEST_CHAIN = 200

/** `versions` in the order in which they arrived. */
export function orderSubscriptions(versions: SubscriptionVersion[]): SubscriptionVersion[] {
  const told = withoutRepeats(versions).sort(
    (a, b) =>
      a.sourceAt - b.sourceAt ||
      CHANGES.indexOf(a.change) - CHANGES.indexOf(b.change) ||
      (a.sequence ?? -1) - (b.sequence ?? -1),
  )
  const ordered: SubscriptionVersion[] = []
  for (let i = 0; i < told.length; ) {
    const first = told[i]!
    let end = i + 1
    while (told[end]?.sourceAt === first.sourceAt && told[end]!.change === first.change) end++
    const group = end === i + 1 ? [first] : distinct(told.slice(i, end))
    ordered.push(...(isChain(group) ? chained(group, ordered.at(-1) ?? null) : group))
    i = end
  }
  return ordered
}

/** One event that two endpoints told, each in the shape of its API version, counts once: as told with most terms. */
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
    if (!known || openTerms(version) < openTerms(known)) byFact.set(fact, version)
  }
  const kept = new Set([...rest, ...byFact.values()])
  return versions.filter(version => kept.has(version))
}

function distinct<Version extends object>(versions: Version[]): Version[] {
  const byText = new Map<string, Version>()
  for (const version of versions) {
    const text = contentText({ ...version, eventId: null })
    if (!byText.has(text)) byText.set(text, version)
  }
  return [...byText.values()]
}

function openTerms({ discounts, items }: SubscriptionVersion): number {
  const all = [...discounts, ...items.flatMap(item => item.discounts)]
  return all.filter(({ percentOff, amountOff }) => percentOff === null && amountOff === null).length
}

function isChain(group: SubscriptionVersion[]): boolean {
  return group.length > 1 && group.length <= LONGEST_CHAIN && group.some(version => version.before)
}

/** The states that a change leads from and to, as far as every API version tells them in the same way. */
type Link = {
  version: SubscriptionVersion
  before: string | null
  after: string
  /** The state before, in the words of its own API version. */
  exactlyBefore: string | null
}

/** Each after the one whose outcome it changed, from the state that came before all of them. */
function chained(group: SubscriptionVersion[], previous: SubscriptionVersion | null): SubscriptionVersion[] {
  let rest = group.map((version): Link => {
    const before = version.before ? { ...version, ...version.before } : null
    return {
      version,
      before: before && alikeText(before),
      after: alikeText(version),
      exactlyBefore: before && stateText(before),
    }
  })
  const ordered: SubscriptionVersion[] = []
  let last = previous
  while (rest.length > 0) {
    const next =
      (last && following(rest, last)) ?? (last && continuing(rest, last)) ?? beginning(rest) ?? rest[0]!
    ordered.push(next.version)
    last = next.version
    rest = rest.filter(link => link !== next)
  }
  return ordered
}

/**
 * What says that it is so already comes first; then, of several that follow, one from which it goes on: what leads nowhere
 * comes last.
 */
function following(rest: Link[], last: SubscriptionVersion): Link | undefined {
  const [state, exactState] = [alikeText(last), stateText(last)]
  const saysNothingNew = (link: Link) =>
    link.after === state && (link.before === null || link.before === state)
  const goesOn = (link: Link) => rest.some(other => other !== link && other.before === link.after)
  const links = rest.filter(link => link.before === state)
  const first = (found: Link[]) => found.find(link => link.exactlyBefore === exactState) ?? found[0]
  return first(rest.filter(saysNothingNew)) ?? first(links.filter(goesOn)) ?? first(links)
}

/** What it changed was as it says, whatever else is said otherwise. */
function continuing(rest: Link[], last: SubscriptionVersion): Link | undefined {
  return rest.find(({ version }) => version.before && hadBefore(version, last))
}

function beginning(rest: Link[]): Link | undefined {
  return rest.find(link => !rest.some(other => other !== link && other.after === link.before))
}

function hadBefore({ before }: SubscriptionVersion, state: SubscriptionVersion): boolean {
  const [was, is] = [alike(before!), alike(state) as Partial<SubscriptionFacts>]
  const changed = Object.entries(was) as [keyof SubscriptionFacts, unknown][]
  return changed.length > 0 && changed.every(([name, value]) => isDeepStrictEqual(is[name] ?? null, value))
}

function stateText(version: SubscriptionVersion): string {
  const { id: _id, sourceAt: _at, change: _change, fact: _fact, sequence: _n, ...rest } = version
  const { before: _before, eventId: _event, ...facts } = rest
  // left out and null say the same
  return contentText(Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null)))
}

function alikeText(version: SubscriptionVersion): string {
  return stateText(alike(version))
}

/** Newer versions tell the periods of items and discounts by id, older ones tell neither. */
function alike<Facts extends Partial<SubscriptionFacts>>(facts: Facts): Facts {
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

/** `versions` in the order in which they arrived. */
export function orderInvoices(versions: InvoiceVersion[]): InvoiceVersion[] {
  const ordered = [...versions].sort(compareInvoices)
  const hasTies = ordered.some(({ sourceAt }, i) => ordered[i + 1]?.sourceAt === sourceAt)
  return hasTies ? distinct(ordered) : ordered
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

/** Stripe sends "failed" and "action required" together; the second says more. */
function failureRank(invoice: InvoiceVersion): number {
  return invoice.failure === null ? 0 : invoice.failure.kind === 'payment_failed' ? 1 : 2
}

export function compareRefunds(a: Refund, b: Refund): number {
  return a.sourceAt - b.sourceAt || Number(b.counts) - Number(a.counts) || compareContent(a, b)
}

function compareContent(a: object, b: object): number {
  const left = contentText(a)
  const right = contentText(b)
  return left < right ? -1 : left > right ? 1 : 0
}
