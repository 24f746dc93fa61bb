/**
 * The order of what sources said about one thing: by their own time; within one time (Stripe's have whole seconds, so
 * ties are everyday) by the chain of changes that the events themselves tell, by sequence, and at last by arrival.
 */

import { isDeepStrictEqual } from 'node:util'
import { contentText } from './content.ts'
import type {
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

type Link = { version: SubscriptionVersion; before: string | null; after: string }

/** Each after the one whose outcome it changed, from the state that came before all of them. */
function chained(group: SubscriptionVersion[], previous: SubscriptionVersion | null): SubscriptionVersion[] {
  let rest = group.map(
    (version): Link => ({
      version,
      before: version.before ? stateText({ ...version, ...version.before }) : null,
      after: stateText(version),
    }),
  )
  const ordered: SubscriptionVersion[] = []
  let last = previous
  let state = previous && stateText(previous)
  while (rest.length > 0) {
    const following = rest.filter(link => link.before !== null && link.before === state)
    // of several that follow, first one from which it goes on: what leads nowhere comes last
    const goesOn = (link: Link) => rest.some(other => other !== link && other.before === link.after)
    const follows = following.find(goesOn) ?? following[0]
    // two endpoints tell one state in two shapes: then what changed has to do
    const continues = () => rest.find(({ version }) => last && version.before && hadBefore(version, last))
    const begins = () => rest.find(link => !rest.some(other => other !== link && other.after === link.before))
    const next = follows ?? continues() ?? begins() ?? rest[0]!
    ordered.push(next.version)
    last = next.version
    state = next.after
    rest = rest.filter(link => link !== next)
  }
  return ordered
}

function hadBefore({ before }: SubscriptionVersion, state: SubscriptionVersion): boolean {
  const changed = Object.entries(before!) as [keyof SubscriptionFacts, unknown][]
  return changed.length > 0 && changed.every(([name, value]) => isDeepStrictEqual(state[name] ?? null, value))
}

function stateText(version: SubscriptionVersion): string {
  const { id: _id, sourceAt: _at, change: _change, fact: _fact, sequence: _n, ...rest } = version
  const { before: _before, eventId: _event, ...facts } = rest
  // left out and null say the same
  return contentText(Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null)))
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
