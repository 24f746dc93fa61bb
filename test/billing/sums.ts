import assert from 'node:assert/strict'
import type { TestServer, TestTenant } from '../server.ts'

const FIGURES = `subscriptions, active_subscriptions, mrr, committed_mrr, item_rows, items, items_priced, items_excluded`
const signed = (columns: string) =>
  columns
    .split(', ')
    .map(column => `sum(sign * ${column})::int as ${column.trim()}`)
    .join(', ')

/** By table of sums: a query for the sums, and one for the totals of their rows. */
const SUMS: Record<string, { kept: string; counted: string }> = {
  days: {
    kept: `select day::text, currency, acquisition_id, sum(accounts)::int as accounts,
        sum(active_accounts)::int as active_accounts, ${signed(FIGURES)}
      from (select 1 as sign, * from billing_account_days where tenant_id = $1) s group by day, currency, acquisition_id`,
    counted: `select day::text, currency, acquisition_id, sum(sign)::int as accounts,
        sum(sign * (mrr > 0)::int)::int as active_accounts, ${signed(FIGURES)}
      from (
        select 1 as sign, (valid_from at time zone 'UTC')::date as day, s.* from billing_account_states s where tenant_id = $1
        union all
        select -1, (valid_to at time zone 'UTC')::date, s.* from billing_account_states s
        where tenant_id = $1 and valid_to < 'infinity'
      ) c group by day, currency, acquisition_id`,
  },
  months: {
    kept: `select month::text, currency, acquisition_id, sum(accounts)::int as accounts, sum(mrr)::int as mrr,
        sum(items)::int as items
      from billing_account_months where tenant_id = $1 group by month, currency, acquisition_id`,
    counted: `select date_trunc('month', day)::date::text as month, currency, acquisition_id,
        sum(accounts)::int as accounts, sum(mrr)::int as mrr, sum(items)::int as items
      from billing_account_days where tenant_id = $1 group by 1, currency, acquisition_id`,
  },
  cash: {
    kept: `select day::text, currency, sum(invoiced)::int as invoiced, sum(invoices)::int as invoices,
        sum(collected)::int as collected, sum(payments)::int as payments, sum(refunded)::int as refunded,
        sum(disputed)::int as disputed, sum(one_off)::int as one_off
      from billing_cash_days where tenant_id = $1 group by day, currency`,
    counted: `select day::text, currency, sum(invoiced)::int as invoiced, sum(invoices)::int as invoices,
        sum(collected)::int as collected, sum(payments)::int as payments, sum(refunded)::int as refunded,
        sum(disputed)::int as disputed, sum(one_off)::int as one_off
      from (
        select (invoiced_at at time zone 'UTC')::date as day, currency, total as invoiced, 1 as invoices, 0 as collected,
          0 as payments, 0 as refunded, 0 as disputed, 0 as one_off
        from billing_invoice_states where tenant_id = $1 and invoiced_at is not null and valid_to = 'infinity'
        union all
        select (occurred_at at time zone 'UTC')::date, currency, 0, 0,
          case when recurring and kind = 'payment' then amount else 0 end,
          (recurring and kind = 'payment')::int,
          case when recurring and kind = 'refund' then amount else 0 end,
          case when recurring and kind = 'dispute' then amount else 0 end,
          case when recurring then 0 when kind = 'payment' then amount else -amount end
        from billing_cash where tenant_id = $1 and valid_to = 'infinity'
      ) c group by day, currency`,
  },
  revenue: {
    kept: `select currency, sum(invoiced)::int as invoiced, sum(recognized)::int as recognized, sum(lines)::int as lines
      from billing_revenue_months where tenant_id = $1 group by currency`,
    counted: `select currency, sum(amount)::int as invoiced, sum(amount)::int as recognized, count(*)::int as lines
      from billing_revenue where tenant_id = $1 and valid_to = 'infinity' group by currency`,
  },
  agenda: {
    kept: `select day::text, currency, kind, sum(entries)::int as entries
      from billing_agenda_days where tenant_id = $1 group by day, currency, kind`,
    counted: `select (due_at at time zone 'UTC')::date::text as day, currency, kind, count(*)::int as entries
      from billing_agenda where tenant_id = $1 and not conditional group by 1, currency, kind`,
  },
}

/** Asserts that every sum equals the total of its rows. Returns the number of sums. */
export async function assertSums(server: TestServer, tenant: TestTenant): Promise<number> {
  let sums = 0
  for (const [name, { kept, counted }] of Object.entries(SUMS)) {
    const [ours, theirs] = await Promise.all(
      [kept, counted].map(async text => {
        const { rows } = await server.pool.query(text, [Number(tenant.id.slice(4))])
        const isSomething = (row: object) => Object.values(row).some(value => Number.isInteger(value) && value !== 0)
        // removed rows may leave sums of zero
        return rows
          .filter(({ acquisition_id: _, ...row }) => isSomething(row))
          .map(row => JSON.stringify(row))
          .sort()
      }),
    )
    assert.deepEqual(ours, theirs, name)
    sums += ours!.length
  }
  return sums
}

/** Changes of sums that are not compacted yet. */
export async function looseSums(server: TestServer, tenant: TestTenant): Promise<number> {
  const tables = ['account_days', 'account_months', 'cash_days', 'revenue_months', 'agenda_days']
  const { rows } = await server.pool.query(
    `select (${tables
      .map(table => `(select count(*) from billing_${table} where tenant_id = $1 and not compacted)`)
      .join(' + ')})::int as loose`,
    [Number(tenant.id.slice(4))],
  )
  return rows[0].loose
}
