import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { type Comparison, comparisonOf, DEFAULT_PERIOD, type Period, resolvePeriod } from './period.ts'
import { tenant } from './session.ts'

/**
 * What the bar selects: the tenant, the period, the comparison and the currency. They are parameters of every address,
 * so that an address shows the same to everyone who opens it.
 */
const PARAMETERS = ['tenant', 'period', 'compare', 'currency'] as const
type Parameter = (typeof PARAMETERS)[number]
type Chosen = Record<Parameter, string | null>

const chosen = signal<Chosen>({ tenant: null, period: null, compare: null, currency: null })

/** The tenant that the address names. */
export const addressedTenant = computed(() => chosen.value.tenant)

/** Takes the view from the filters of an address, and leaves the filters of the page. */
export function takeView(query: URLSearchParams): void {
  const given = Object.fromEntries(PARAMETERS.map(name => [name, query.get(name)])) as Chosen
  for (const name of PARAMETERS) query.delete(name)
  if (JSON.stringify(given) !== JSON.stringify(chosen.peek())) chosen.value = given
}

/** What the bar needs to know about the tenant. */
export type TenantFacts = { id: string; time_zone: string; currencies: string[]; reporting_currency: string | null }

const facts = signal<TenantFacts | null>(null)
export const tenantFacts: ReadonlySignal<TenantFacts | null> = facts

export function setTenantFacts(known: TenantFacts | null): void {
  facts.value = known
}

export const timeZone = computed(() => facts.value?.time_zone ?? 'UTC')

export const COMPARISONS = [
  ['previous', 'Previous period'],
  ['year', 'Previous year'],
  ['none', 'No comparison'],
] as const satisfies readonly (readonly [Comparison, string])[]

export const compare = computed<Comparison>(
  () => COMPARISONS.find(([name]) => name === chosen.value.compare)?.[0] ?? 'previous',
)

const FALLBACK_CURRENCY = 'EUR'

/** In place of a currency: all currencies, converted to the reporting currency of the tenant. */
export const REPORTING = 'reporting'
export const isReporting = computed(
  () => chosen.value.currency?.toLowerCase() === REPORTING && (facts.value?.reporting_currency ?? null) !== null,
)

/** The currency of amounts: the chosen one, else the one that the tenant uses most. */
export const currency = computed(() => {
  if (isReporting.value) return facts.value!.reporting_currency!
  const code = chosen.value.currency?.toUpperCase() ?? ''
  return /^[A-Z]{3}$/.test(code) ? code : (facts.value?.currencies[0] ?? FALLBACK_CURRENCY)
})

/** The parameter of reports that can convert. */
export const reportCurrency = computed(() => (isReporting.value ? REPORTING : currency.value))

/** The period as of now. Not a signal: an open period ends later each time. */
export function readPeriod(): Period {
  return resolvePeriod(chosen.value.period, new Date(), timeZone.value)
}

export function readComparison(period: Period): Period | null {
  return comparisonOf(period, compare.value, timeZone.value)
}

/** An absent parameter keeps its value in links, so a reset is written out. */
const DEFAULTS: Partial<Record<Parameter, string>> = { period: DEFAULT_PERIOD, compare: 'previous' }

/** null: the default. */
export type ViewChange = Partial<Record<'period' | 'compare' | 'currency', string | null>>

/** Adds the view to an address. Parameters that the address has already stay. */
export function withView(href: string, changes: ViewChange = {}): string {
  if (!href.startsWith('#/')) return href
  const [path = '', search = ''] = href.split('?')
  const query = new URLSearchParams(search)
  const all = { ...chosen.value, ...changes, tenant: tenant.value }
  for (const name of PARAMETERS) {
    if (name in changes) query.delete(name)
    const value = name in changes ? (all[name] ?? DEFAULTS[name]) : all[name]
    if (value && !query.has(name)) query.set(name, value)
  }
  return query.size > 0 ? `${path}?${query}` : path
}
