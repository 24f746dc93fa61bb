import { type KnownTerms, knownTerms, termOfTold, withTerm } from '../../domain/billing/terms.ts'
import type { SubscriptionVersion, Term } from '../../domain/billing/types.ts'
import type { Db } from '../../postgres/database.ts'
import { lockTenants, shareTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import { distinctKeys, type ObjectKey } from '../../store/billing/keys.ts'
import {
  loadTerms,
  loadTermsOfCustomers,
  queueSubscriptions,
  subscriptionsReading,
  type TermKey,
  type TermRow,
  upsertTerms,
} from '../../store/billing/terms.ts'
import type { Deriving } from '../unit.ts'

/** What one transaction derives at once; a coupon may be that of a hundred thousand subscriptions. */
const DERIVED_AT_ONCE = 500

export type TenantTerm = { tenantId: number; term: Term }

/**
 * Keeps what is told of coupons, discounts and customers, and returns the subscriptions that read otherwise by it.
 * Whoever tells has the tenant's terms alone, whoever derives subscriptions (`deriving`) shares them: of two that learn
 * the halves of one fact, the second sees both.
 */
export async function applyTerms(
  { client }: Deriving,
  terms: TenantTerm[],
  deriving: number[],
): Promise<ObjectKey[]> {
  const telling = await tenantsWithNews(client, terms)
  await lockTenants(client, TENANT_LOCKS.terms, telling)
  const sharing = deriving.filter(tenantId => !telling.has(tenantId))
  if (sharing.length > 0) await shareTenants(client, TENANT_LOCKS.terms, sharing)
  if (telling.size === 0) return []
  const changed = await keepTerms(
    client,
    terms.filter(({ tenantId }) => telling.has(tenantId)),
  )
  if (changed.length === 0) return []
  const outdated = await subscriptionsReading(client, changed)
  if (outdated.length > DERIVED_AT_ONCE) await queueSubscriptions(client, outdated.slice(DERIVED_AT_ONCE))
  return outdated.slice(0, DERIVED_AT_ONCE)
}

/** Most of what is told was told before: looking first keeps others from waiting. */
async function tenantsWithNews(db: Db, terms: TenantTerm[]): Promise<Set<number>> {
  if (terms.length === 0) return new Set()
  const known = rowsByKey(await loadTerms(db, keysOf(terms)))
  return new Set(
    terms.flatMap(({ tenantId, term }) => {
      const told = known.get(rowText({ tenantId, ...term }))?.told
      return told && withTerm(told, term) === told ? [] : [tenantId]
    }),
  )
}

async function keepTerms(db: Db, terms: TenantTerm[]): Promise<TermKey[]> {
  const rows = rowsByKey(await loadTerms(db, keysOf(terms)))
  const changed = new Set<string>()
  for (const { tenantId, term } of terms) {
    const { kind, id } = term
    const row = rows.get(rowText({ tenantId, ...term })) ?? { tenantId, kind, id, told: [] }
    const told = withTerm(row.told, term)
    if (told === row.told) continue
    rows.set(rowText(row), { ...row, told })
    changed.add(rowText(row))
  }
  const news = [...changed].map(text => rows.get(text)!)
  if (news.length > 0)
    await upsertTerms(
      db,
      news.map(row => ({ ...row, merged: termOfTold(row.told) })),
    )
  return news
}

function keysOf(terms: TenantTerm[]): TermKey[] {
  const keys = terms.map(({ tenantId, term: { kind, id } }) => ({ tenantId, kind, id }))
  return [...new Map(keys.map(key => [rowText(key), key])).values()]
}

function rowText({ tenantId, kind, id }: TermKey): string {
  return `${tenantId} ${kind} ${id}`
}

function rowsByKey(rows: TermRow[]): Map<string, TermRow> {
  return new Map(rows.map(row => [rowText(row), row]))
}

/** All that these versions name, by tenant. */
export async function termsNamedBy(
  db: Db,
  versions: { tenantId: number; version: SubscriptionVersion }[],
): Promise<Map<number, KnownTerms>> {
  const customers = versions.flatMap(({ tenantId, version }) =>
    version.customer === null ? [] : [{ tenantId, id: version.customer }],
  )
  const discounts = versions.flatMap(({ tenantId, version: { discounts, items } }) =>
    [...discounts, ...items.flatMap(item => item.discounts)].map(discount => ({ tenantId, discount })),
  )
  const rows = customers.length > 0 ? await loadTermsOfCustomers(db, distinctKeys(customers)) : []
  const named: TermKey[] = discounts.flatMap(({ tenantId, discount: { id } }) =>
    id === undefined ? [] : [{ tenantId, kind: 'discount' as const, id }],
  )
  if (named.length > 0) rows.push(...(await loadTerms(db, distinctTerms(named))))
  const references = [
    ...discounts.map(({ tenantId, discount }) => ({ tenantId, ...discount })),
    ...rows.map(({ tenantId, told }) => ({ tenantId, ...termOfTold(told) })),
  ]
  // a promotion code leads to its coupon: two steps at most
  const codes = references.flatMap(({ tenantId, promotionCodeId: id }) =>
    id === undefined ? [] : [{ tenantId, kind: 'promotion_code' as const, id }],
  )
  const codeRows = codes.length > 0 ? await loadTerms(db, distinctTerms(codes)) : []
  const coupons = [
    ...references,
    ...codeRows.map(({ tenantId, told }) => ({ tenantId, ...termOfTold(told) })),
  ].flatMap(({ tenantId, couponId: id }) =>
    id === undefined ? [] : [{ tenantId, kind: 'coupon' as const, id }],
  )
  const couponRows = coupons.length > 0 ? await loadTerms(db, distinctTerms(coupons)) : []
  const byTenant = Map.groupBy([...rows, ...codeRows, ...couponRows], ({ tenantId }) => tenantId)
  return new Map(
    [...byTenant].map(([tenantId, own]) => [tenantId, knownTerms(own.map(({ told }) => termOfTold(told)))]),
  )
}

function distinctTerms(keys: TermKey[]): TermKey[] {
  return [...new Map(keys.map(key => [rowText(key), key])).values()]
}
