import { DEFAULT_POLICY, type Policy, type PolicyVersion } from '../../domain/billing/policy.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

type Stored = { version: number; policy: string }

function versionOf(row: Stored | undefined): PolicyVersion {
  return row ? { ...DEFAULT_POLICY, ...JSON.parse(row.policy), version: row.version } : DEFAULT_POLICY
}

/** The policy that reports follow. */
export async function appliedPolicy(db: Db, tenantId: number): Promise<PolicyVersion> {
  const { rows } = await queryPrepared<Stored>(
    db,
    `select version, policy from tenant_policies
     where tenant_id = $1 and applied_at is not null order by version desc limit 1`,
    [tenantId],
  )
  return versionOf(rows[0])
}

export type PolicyRow = PolicyVersion & { setAt: Date | null; setBy: string | null; appliedAt: Date | null }

/** The newest policy, whether reports follow it yet or not. */
export async function newestPolicy(db: Db, tenantId: number): Promise<PolicyRow> {
  const { rows } = await queryPrepared<Stored & Pick<PolicyRow, 'setAt' | 'setBy' | 'appliedAt'>>(
    db,
    `select version, policy, set_at as "setAt", set_by as "setBy", applied_at as "appliedAt" from tenant_policies
     where tenant_id = $1 order by version desc limit 1`,
    [tenantId],
  )
  const row = rows[0]
  const { setAt, setBy, appliedAt } = row ?? { setAt: null, setBy: null, appliedAt: null }
  return { ...versionOf(row), setAt, setBy, appliedAt }
}

/** `isApplied`: reports follow it at once. */
export async function insertPolicy(
  db: Db,
  tenantId: number,
  { version, ...policy }: PolicyVersion,
  { setBy, isApplied }: { setBy: string; isApplied: boolean },
): Promise<void> {
  const settings: Policy = policy
  await queryPrepared(
    db,
    `insert into tenant_policies (tenant_id, version, policy, set_by, applied_at)
     values ($1, $2, $3, $4, case when $5 then now() end)`,
    [tenantId, version, JSON.stringify(settings), setBy, isApplied],
  )
}

/** As PostgreSQL spells it; null where it knows no such zone. */
export async function timeZoneName(db: Db, name: string): Promise<string | null> {
  const { rows } = await db.query<{ name: string }>(
    'select name from pg_timezone_names where lower(name) = lower($1) limit 1',
    [name],
  )
  return rows[0]?.name ?? null
}
