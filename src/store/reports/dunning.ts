import type { InvoiceState } from '../../domain/billing/cash.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import type { Scope } from './scope.ts'

export type FailedInvoice = {
  failedAt: Date
  /** As it was when a payment first failed, and as it is at `asOf`. */
  failed: InvoiceState
  current: InvoiceState
  /** From when on its subscription has ended; null: it has not, or there is none. */
  subscriptionEndedAt: Date | null
}

type FailedRow = { failedAt: Date; failed: string; current: string; subscriptionEndedAt: Date | null }

const FAILED = `
select f.failed_at as "failedAt", f.body as failed, c.body as current, e.valid_from as "subscriptionEndedAt"
from (
  select distinct on (invoice_id) invoice_id, issue_from as failed_at, body from (
    select invoice_id, issue_from, body from billing_invoice_states
    where tenant_id = $1 and currency = $2 and issue_from <= $3 offset 0) issues
  where body -> 'failure' ->> 'kind' is not null
  order by invoice_id, issue_from
) f
cross join lateral (
  select body, subscription_id from billing_invoice_states
  where tenant_id = $1 and invoice_id = f.invoice_id and valid_from <= $3 and valid_to > $3 offset 0) c
left join lateral (
  select valid_from from billing_segments
  where tenant_id = $1 and subscription_id = c.subscription_id and valid_from <= $3 and valid_to > $3
    and status = 'canceled' offset 0) e on true
where f.failed_at > $4 and f.failed_at <= $5
order by f.failed_at, f.invoice_id`

/** Invoices of which a payment first failed in (since, until], the oldest first. */
export async function failedInvoices(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  { since, until }: { since: Date; until: Date },
): Promise<FailedInvoice[]> {
  const { rows } = await queryPrepared<FailedRow>(db, FAILED, [tenantId, currency, asOf, since, until])
  return rows.map(({ failed, current, ...row }) => ({
    ...row,
    failed: JSON.parse(failed),
    current: JSON.parse(current),
  }))
}
