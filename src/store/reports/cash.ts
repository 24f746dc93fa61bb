import type { InvoiceState } from '../../domain/billing/invoices.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import type { Scope } from './scope.ts'

/** An invoice, or money that came in or went back. */
export type CashFact = {
  occurredAt: Date
  kind: 'invoice' | 'payment' | 'refund' | 'dispute'
  id: string
  invoiceId: string | null
  subscriptionId: string | null
  customer: string | null
  amount: number
  /** Of an invoice: what is still to be paid. */
  outstanding: number
  /** Of an invoice of a subscription; other money is one-off. */
  recurring: boolean
}

// Each row on its way to the invoice and the payment that it is of by their keys.
const FACTS = `
select i.invoiced_at as "occurredAt", 'invoice' as kind, i.invoice_id as id, i.invoice_id as "invoiceId",
  i.subscription_id as "subscriptionId", i.customer, i.total as amount, i.body, i.subscription_id is not null as recurring
from billing_invoice_states i
where i.tenant_id = $1 and i.currency = $2 and i.invoiced_at >= $4 and i.invoiced_at < $5 and i.invoiced_at <= $3
  and i.valid_from <= $3 and i.valid_to > $3
union all
select c.occurred_at, c.kind, c.id, v.id, v.subscription_id, coalesce(v.customer, p.body ->> 'customer'), c.amount, null,
  c.recurring
from (
  select * from billing_cash
  where tenant_id = $1 and currency = $2 and occurred_at >= $4 and occurred_at < $5 and occurred_at <= $3 and valid_to > $3
  offset 0) c
left join lateral (
  select id, subscription_id, customer from billing_invoices
  where tenant_id = $1 and id = substr(c.owner, length('invoice ') + 1) and starts_with(c.owner, 'invoice ') offset 0) v on true
left join lateral (
  select body from billing_payments where tenant_id = $1 and id = c.id and v.id is null offset 0) p on true
order by "occurredAt", kind, id`

/** What was invoiced and paid in [since, until), as it stands at `asOf`. */
export async function cashFacts(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  window: { since: Date; until: Date },
): Promise<CashFact[]> {
  const { rows } = await queryPrepared<Omit<CashFact, 'outstanding'> & { body: string | null }>(db, FACTS, [
    tenantId,
    currency,
    asOf,
    window.since,
    window.until,
  ])
  return rows.map(({ body, ...fact }) => ({
    ...fact,
    outstanding: body === null ? 0 : outstandingOf(JSON.parse(body)),
  }))
}

/** What an invoice that is being collected still lacks. */
function outstandingOf({ status, amountRemaining }: InvoiceState): number {
  return status === 'open' ? amountRemaining : 0
}
