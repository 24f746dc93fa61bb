import type { AccountTraits } from '../../domain/billing/dimensions.ts'
import { countryName } from '../../domain/billing/fields.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

// Step by step from an account to its contact, as reports name accounts: with `offset 0` each step goes by the index
// that it names in full.
const TRAITS = `
select k.account, coalesce(a.source, 'unattributed') as source, coalesce(r.country, p.country) as country
from unnest($2::text[]) as k (account)
left join lateral (
  select a.node, q.source from billing_accounts a
  left join billing_acquisitions q on q.tenant_id = $1 and q.id = a.acquisition_id
  where a.tenant_id = $1 and a.account = k.account offset 0
) a on true
left join lateral (
  select data ->> 'country' as country from records
  where tenant_id = $1 and entity_type = 'contact' and id = k.account and not deleted offset 0
) r on true
left join lateral (
  select c.country from (
    select profile from identities where tenant_id = $1 and node = a.node offset 0) i
  cross join lateral (
    select node, kind, value from identities where tenant_id = $1 and profile = i.profile offset 0) m
  cross join lateral (
    select data ->> 'country' as country from records
    where tenant_id = $1 and entity_type = 'contact' and id = m.value and not deleted offset 0) c
  where m.kind = 'contact' and c.country is not null order by m.node limit 1
) p on r.country is null`

/** Where accounts came from, and the countries that their contacts name. */
export async function accountTraits(
  db: Db,
  tenantId: number,
  accounts: string[],
): Promise<Map<string, AccountTraits>> {
  const { rows } = await queryPrepared<AccountTraits & { account: string }>(db, TRAITS, [tenantId, accounts])
  return new Map(
    rows.map(({ account, source, country }) => [account, { source, country: countryName(country) }]),
  )
}
