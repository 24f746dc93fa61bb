import type { DailyRate } from '../../domain/billing/exchange.ts'
import type { Day } from '../../domain/time.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import type { Closing } from './closings.ts'

/**
 * Keeps the rates that `putRates` is about to change for all closings since they were last kept. A currency without any earlier
 * rate had no figures, so that its first rates apply to closed months, too. The caller keeps all rates before it puts any.
 */
export async function keepRates(db: Db, tenantId: number, rates: DailyRate[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_closed_rates (tenant_id, currency, day, closing, rate)
     select $1, n.currency, n.day, c.number, o.rate
     from (
       select max(number) as number, (max(ends) at time zone 'UTC')::date as last from billing_closings where tenant_id = $1
     ) c
     join unnest($2::text[], $3::date[], $4::numeric[]) as n (currency, day, rate) on n.day <= c.last
     left join exchange_rates o on o.tenant_id = $1 and o.currency = n.currency and o.day = n.day
     where o.rate is distinct from n.rate and (o.rate is not null or exists (
       select from exchange_rates e where e.tenant_id = $1 and e.currency = n.currency and e.day < n.day))
     on conflict do nothing`,
    [tenantId, ...rateColumns(rates)],
  )
}

function rateColumns(rates: DailyRate[]) {
  return [rates.map(rate => rate.currency), rates.map(rate => rate.day), rates.map(rate => rate.rate)]
}

/** Replaces existing rates. */
export async function putRates(db: Db, tenantId: number, rates: DailyRate[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into exchange_rates (tenant_id, currency, day, rate)
     select $1, * from unnest($2::text[], $3::date[], $4::numeric[])
     on conflict (tenant_id, currency, day) do update set rate = excluded.rate`,
    [tenantId, ...rateColumns(rates)],
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

/** The same, as of a closing. */
export async function ratesAsClosed(
  db: Db,
  tenantId: number,
  { number }: Closing,
  currencies: string[],
  days: { first: Day; last: Day },
): Promise<DailyRate[]> {
  const kept = await queryRows<Omit<DailyRate, 'rate'> & { rate: string | null }>(
    db,
    `select distinct on (currency, day) currency, day::text as day, rate::text as rate from billing_closed_rates
     where tenant_id = $1 and currency = any($2) and day <= $3::date and closing >= $4 order by currency, day, closing`,
    [tenantId, currencies, days.last, number],
  )
  const text = ({ currency, day }: Omit<DailyRate, 'rate'>) => `${currency} ${day}`
  const replaced = new Set(kept.map(text))
  const others = (await ratesBetween(db, tenantId, currencies, days)).filter(rate => !replaced.has(text(rate)))
  return [...others, ...kept.flatMap(({ rate, ...of }) => (rate === null ? [] : [{ ...of, rate }]))]
}
