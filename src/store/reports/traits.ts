import type { AccountTraits } from '../../domain/billing/dimensions.ts'
import { countryName } from '../../domain/billing/fields.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

// Step by step from an account to its contact, as reports name accounts: with `offset 0` each step goes by the index
// that it names in full.
const TRAITS = `
select k.account, coalesce(a.source, 'unattributed') as source, coalesce(r.country, p.country) as country,
  coalesce(a.acquisition_id, 0) as "acquisitionId"
from unnest($2::text[]) as k (account)
left join lateral (
  select a.node, a.acquisition_id, q.source from billing_accounts a
  left join billing_acquisitions q on q.tenant_id = $1 and q.id = a.acquisition_id
  where a.tenant_id = $1 and a.account = k.account offset 0
) a on true
left join lateral (
  select data ->> 'country' as country from records
  where $3::boolean and tenant_id = $1 and entity_type = 'contact' and id = k.account and not deleted offset 0
) r on true
left join lateral (
  select c.country from (
    select profile from identities where $3::boolean and tenant_id = $1 and node = a.node offset 0) i
  cross join lateral (
    select node, kind, value from identities where tenant_id = $1 and profile = i.profile offset 0) m
  cross join lateral (
    select data ->> 'country' as country from records
    where tenant_id = $1 and entity_type = 'contact' and id = m.value and not deleted offset 0) c
  where m.kind = 'contact' and c.country is not null order by m.node limit 1
) p on r.country is null`

export type ReportTraits = AccountTraits & { acquisitionId: number }

/** Where accounts came from, and the countries that their contacts name, if that is wanted. */
export async function reportTraits(
  db: Db,
  tenantId: number,
  accounts: string[],
  withCountry: boolean,
): Promise<Map<string, ReportTraits>> {
  if (accounts.length === 0) return new Map()
  const { rows } = await queryPrepared<ReportTraits & { account: string }>(db, TRAITS, [
    tenantId,
    accounts,
    withCountry,
  ])
  return new Map(
    rows.map(({ account, ...traits }) => [account, { ...traits, country: countryName(traits.country) }]),
  )
}
