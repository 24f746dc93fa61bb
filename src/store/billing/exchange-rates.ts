import type { DailyRate } from '../../domain/billing/exchange.ts'
import type { Day } from '../../domain/time.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'

/** Replaces existing rates. */
export async function putRates(db: Db, tenantId: number, rates: DailyRate[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into exchange_rates (tenant_id, currency, day, rate)
     select $1, * from unnest($2::text[], $3::date[], $4::numeric[])
     on conflict (tenant_id, currency, day) do update set rate = excluded.rate`,
    [tenantId, rates.map(rate => rate.currency), rates.map(rate => rate.day), rates.map(rate => rate.rate)],
  )
}

/** The rates of these currencies between two days, and the last ones before. */
export async function ratesBetween(
  db: Db,
  tenantId: number,
  currencies: string[],
  { first, last }: { first: Day; last: Day },
): Promise<DailyRate[]> {
  return queryRows<DailyRate>(
    db,
    `select c.currency, r.day::text as day, r.rate::text as rate from unnest($2::text[]) as c (currency)
     cross join lateral (
       select coalesce(max(day), $3::date) as first from exchange_rates
       where tenant_id = $1 and currency = c.currency and day <= $3::date offset 0) f
     cross join lateral (
       select day, rate from exchange_rates
       where tenant_id = $1 and currency = c.currency and day >= f.first and day <= $4::date offset 0) r`,
    [tenantId, currencies, first, last],
  )
}
