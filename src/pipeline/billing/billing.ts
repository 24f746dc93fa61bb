import { hash } from 'node:crypto'
import { isBillingEvent, readBilling } from '../../domain/billing/feed.ts'
import { contentText } from '../../domain/billing/order.ts'
import type { BillingChange } from '../../domain/billing/types.ts'
import { insertVersions, keyText, type NewVersion, type ObjectKey } from '../../store/billing/versions.ts'
import type { EventListener, FreshEvent } from '../events/fresh-event.ts'
import type { Transaction } from '../unit.ts'
import { applyInvoices, applyRefunds } from './invoices.ts'
import { applySubscriptions } from './subscriptions.ts'

/** What a billing event says, and who said it. */
export type Said = {
  tenantId: number
  eventId: string
  eventType: string
  node: number | null
  change: BillingChange
}

/** Takes billing events into the ledger. */
export function billingEvents(): EventListener {
  return async (transaction, events) => {
    const said = events.flatMap(read)
    if (said.length > 0) await applyBilling(transaction, said)
  }
}

function read({ tenantId, event, node }: FreshEvent): Said[] {
  const { id, eventType, subject, occurredAt } = event
  if (!isBillingEvent(eventType, subject)) return []
  const change = readBilling(eventType, subject, occurredAt.getTime())
  return change ? [{ tenantId, eventId: id, eventType, node, change }] : []
}

/**
 * Keeps what is new and derives again whatever it touches. Locks are taken in one order: subscriptions, their accounts,
 * invoices, refunds; each kind sorted.
 */
export async function applyBilling(transaction: Transaction, said: Said[]): Promise<void> {
  const { client } = transaction
  const changed = await insertVersions(client, distinctVersions(said.flatMap(versionsOf)))
  const news = (kind: NewVersion['kind']): ObjectKey[] => changed.filter(one => one.kind === kind)
  const subscriptions = news('subscription')
  const invoices = news('invoice')
  const refunds = news('refund')
  if (subscriptions.length > 0 || invoices.length > 0) {
    await applySubscriptions(transaction, subscriptions, {
      named: subscriptionsNamedBy(said),
      nodes: nodesOf(said),
    })
  }
  if (invoices.length > 0) await applyInvoices(client, invoices)
  if (refunds.length > 0) await applyRefunds(client, refunds)
}

function versionsOf({ tenantId, eventId, eventType, change }: Said): NewVersion[] {
  const version = (kind: NewVersion['kind'], one: { id: string; sourceAt: number }): NewVersion => {
    const body = contentText(one)
    const digest = hash('sha256', `${eventType}\n${body}`, 'hex').slice(0, 32)
    return { tenantId, kind, id: one.id, hash: digest, sourceAt: one.sourceAt, eventId, eventType, body }
  }
  return change.kind === 'refunds'
    ? change.refunds.map(refund => version('refund', refund))
    : [version(change.kind, change.version)]
}

/** A batch may say the same twice. */
function distinctVersions(versions: NewVersion[]): NewVersion[] {
  return [...new Map(versions.map(one => [`${one.kind} ${keyText(one)} ${one.hash}`, one])).values()]
}

function subscriptionsNamedBy(said: Said[]): ObjectKey[] {
  const named = said.flatMap(({ tenantId, change }) =>
    change.kind === 'invoice' && change.version.subscriptionId !== null
      ? [{ tenantId, id: change.version.subscriptionId }]
      : [],
  )
  return [...new Map(named.map(key => [keyText(key), key])).values()]
}

/** Under which name each subscription was last seen. */
function nodesOf(said: Said[]): Map<string, number> {
  return new Map(
    said.flatMap(({ tenantId, node, change }) =>
      change.kind === 'subscription' && node !== null
        ? [[keyText({ tenantId, id: change.version.id }), node] as const]
        : [],
    ),
  )
}
