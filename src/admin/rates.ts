import type pg from 'pg'
import type { DailyRate } from '../domain/billing/exchange.ts'
import { knownCurrency, parseDecimal } from '../domain/money.ts'
import { Count } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { inTransaction } from '../postgres/database.ts'
import { shareTenants, TENANT_LOCKS } from '../postgres/locks.ts'
import { keepRates, putRates } from '../store/billing/exchange-rates.ts'
import { type Actor, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError } from './error.ts'

export const ImportedRates = Type.Object(
  {
    tenant: Type.String(),
    days: Count,
    currencies: Count,
    rates: Count,
    first: Type.String({ description: 'The first day' }),
    last: Type.String({ description: 'The last day' }),
  },
  {
    examples: [{ tenant: 'ten_1', days: 2, currencies: 1, rates: 2, first: '2026-03-30', last: '2026-03-31' }],
  },
)
export type ImportedRates = Static<typeof ImportedRates>

const RATES_AT_A_TIME = 10_000

/** Units per euro. Beyond these a rate is a mistake, and amounts are no longer exact. */
const [MIN_RATE, MAX_RATE] = [1e-6, 1e9]

export function rateAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    /** `csv`: the format of the European Central Bank (eurofxref-hist.csv). Loading the same file twice changes nothing. */
    async import(idOrName: string, csv: string): Promise<ImportedRates> {
      const { id } = await requireTenant(pool, actor, idOrName)
      const rates = await parseRates(csv)
      const imported: ImportedRates = { tenant: publicTenantId(id), ...countRates(rates) }
      const portions: DailyRate[][] = []
      for (let done = 0; done < rates.length; done += RATES_AT_A_TIME)
        portions.push(rates.slice(done, done + RATES_AT_A_TIME))
      await inTransaction(pool, async tx => {
        // no month is closed meanwhile
        await shareTenants(tx, TENANT_LOCKS.terms, [id])
        for (const portion of portions) await keepRates(tx, id, portion)
        for (const portion of portions) await putRates(tx, id, portion)
        await recordChange(tx, actor, {
          action: 'rates.import',
          target: imported.tenant,
          tenantId: id,
          before: null,
          after: imported,
        })
      })
      return imported
    },
  }
}

export function countRates(rates: DailyRate[]): Omit<ImportedRates, 'tenant'> {
  const days = [...new Set(rates.map(rate => rate.day))].sort()
  return {
    days: days.length,
    currencies: new Set(rates.map(rate => rate.currency)).size,
    rates: rates.length,
    first: days[0]!,
    last: days.at(-1)!,
  }
}

/** One row per day, one column per currency; `N/A` or empty if there is no rate. */
export async function parseRates(csv: string): Promise<DailyRate[]> {
  // Loaded here, so that it does not delay every command and start.
  const { parse } = await import('csv-parse/sync')
  const [header = [], ...lines] = parse(csv, {
    bom: true,
    trim: true,
    skip_empty_lines: true,
    relax_column_count: true,
  }) as string[][]
  if (header[0] !== 'Date') {
    throw invalidFile('the first line must list Date and currencies, for example Date,USD,JPY')
  }
  const rates = new Map<string, DailyRate>()
  for (const [i, [day = '', ...cells]] of lines.entries()) {
    if (!isDay(day)) throw invalidFile(`line ${i + 2} starts with ${JSON.stringify(day)}, which is not a date`)
    for (const [column, cell] of cells.entries()) {
      const currency = knownCurrency(header[column + 1])
      // The file also contains currencies that no longer exist.
      if (currency === null || cell === '' || cell === 'N/A') continue
      const rate = parseDecimal(cell)
      if (rate === null || Number(cell) < MIN_RATE || Number(cell) > MAX_RATE) {
        throw invalidFile(`line ${i + 2} has ${JSON.stringify(cell)} for ${currency}, which is not a rate`)
      }
      rates.set(`${currency} ${day}`, { currency, day, rate: cell })
    }
  }
  if (rates.size === 0) throw invalidFile('it contains no rate')
  return [...rates.values()]
}

function isDay(text: string): boolean {
  const date = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : null
  return date !== null && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

function invalidFile(why: string): AdminError {
  return new AdminError(
    'invalid',
    'invalid_request',
    `The file does not have the format of the European Central Bank: ${why}.`,
  )
}
