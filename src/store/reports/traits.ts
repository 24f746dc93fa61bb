import type { AccountTraits } from '../../domain/billing/dimensions.ts'
import { normalizeCountry } from '../../domain/billing/fields.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { contactOfAccount } from './accounts.ts'

const TRAITS = `
select k.account, coalesce(a.source, 'unattributed') as source, coalesce(r.value, p.value) as country,
  coalesce(a.acquisition_id, 0) as "acquisitionId"
from unnest($2::text[]) as k (account)
left join lateral (
  select a.node, a.acquisition_id, q.source from billing_accounts a
  left join billing_acquisitions q on q.tenant_id = $1 and q.id = a.acquisition_id
  where a.tenant_id = $1 and a.account = k.account offset 0
) a on true
${contactOfAccount(`data ->> 'country'`, '$3::boolean')}`

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
    rows.map(({ account, ...traits }) => [account, { ...traits, country: normalizeCountry(traits.country) }]),
  )
}
