import type pg from 'pg'
import { issueFrom } from '../../domain/billing/attention.ts'
import { contentHash } from '../../domain/billing/content.ts'
import {
  collectedAt,
  countedRefunds,
  deriveInvoice,
  invoicedAt,
  mergeRefund,
  summarizeInvoice,
} from '../../domain/billing/invoices.ts'
import { compareRefunds } from '../../domain/billing/precedence.ts'
import type { InvoiceVersion, Refund } from '../../domain/billing/types.ts'
import {
  type InvoiceLedger,
  loadRefundsOfCharges,
  lockInvoices,
  lockRefunds,
  replaceInvoices,
  upsertRefunds,
} from '../../store/billing/invoices.ts'
import { distinctKeys, keyText, type ObjectKey } from '../../store/billing/keys.ts'
import { loadVersions } from '../../store/billing/versions.ts'

/** Derives invoices anew from all that is known of them. */
export async function applyInvoices(client: pg.PoolClient, keys: ObjectKey[]): Promise<void> {
  await lockInvoices(client, keys)
  const known = await loadVersions<InvoiceVersion>(client, 'invoice', keys)
  await replaceInvoices(client, [...Map.groupBy(known, keyText).values()].map(ledgerOf))
}

function ledgerOf(versions: (ObjectKey & { version: InvoiceVersion })[]): InvoiceLedger {
  const { tenantId, id } = versions[0]!
  const states = deriveInvoice(versions.map(({ version }) => version))
  return {
    tenantId,
    id,
    summary: summarizeInvoice(states),
    states: states.map(state => ({
      state,
      hash: contentHash(state),
      invoicedAt: invoicedAt(state),
      collectedAt: collectedAt(state),
      issueFrom: issueFrom(state),
    })),
  }
}

/** Refunds of one charge are looked at together: what was read off its total gives way to refunds known by name. */
export async function applyRefunds(client: pg.PoolClient, keys: ObjectKey[]): Promise<void> {
  await lockRefunds(
    client,
    keys.map(({ tenantId }) => tenantId),
  )
  const known = await loadVersions<Refund>(client, 'refund', keys)
  const merged = [...Map.groupBy(known, keyText).values()].map(versions => ({
    tenantId: versions[0]!.tenantId,
    id: versions[0]!.id,
    refund: versions
      .map(({ version }) => version)
      .sort(compareRefunds)
      .reduce(mergeRefund),
  }))
  const charges = merged.flatMap(({ tenantId, refund }) =>
    refund.chargeId === null ? [] : [{ tenantId, id: refund.chargeId }],
  )
  const others = charges.length > 0 ? await loadRefundsOfCharges(client, charges) : []
  const all = distinctKeys([...others, ...merged])
  const groups = Map.groupBy(all, ({ tenantId, id, refund }) => `${tenantId} ${refund.chargeId ?? `=${id}`}`)
  await upsertRefunds(
    client,
    [...groups.values()].flatMap(group => {
      const counted = new Set(countedRefunds(group.map(({ refund }) => refund)))
      const of = chargeOf(group.map(({ refund }) => refund))
      return group.map(({ refund, ...key }) => ({
        ...key,
        refund: {
          ...refund,
          invoiceId: refund.invoiceId ?? of.invoiceId,
          customer: refund.customer ?? of.customer,
        },
        counted: counted.has(refund),
      }))
    }),
  )
}

/** Of refunds of one charge, one may tell whose it was: Stripe's own name only the charge. */
function chargeOf(refunds: Refund[]): Pick<Refund, 'invoiceId' | 'customer'> {
  const known = (field: 'invoiceId' | 'customer') =>
    refunds.flatMap(refund => refund[field] ?? []).sort()[0] ?? null
  return { invoiceId: known('invoiceId'), customer: known('customer') }
}
