import type pg from 'pg'
import { RULE_NAMES, RULES, type Rule, type Thresholds, withDefaultThresholds } from '../domain/alerts/rules.ts'
import { Nullable, NullableTimestamp, Timestamp, Uuid } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { type Log, LogUnavailable, oldestUnread } from '../log/log.ts'
import { databaseNow, inTransaction } from '../postgres/database.ts'
import {
  type Alert,
  listAlerts,
  listSourceRhythms,
  readTenantThresholds,
  saveThresholds,
} from '../store/alerts/alerts.ts'
import { lockTenant } from '../store/tenants/tenants.ts'
import { type Actor, requireTenant, resolveTenantFilter } from './actor.ts'
import { lagReadings, readValues, silenceReading } from './alert-values.ts'
import { recordChange } from './audit.ts'
import { throwIfInvalid } from './error.ts'

const MAX_LISTED = 200

/** An absent rule stays as it is; null turns it off; 'default' removes the tenant's own threshold. */
export type RulesChange = Partial<Record<string, number | null | 'default'>>

export function alertAdmin({ pool, log, actor }: { pool: pg.Pool; log: Log; actor: Actor }) {
  return {
    /** Newest first: the raised alerts, or all of the last 90 days. */
    async list({ tenant, all = false }: { tenant?: string | undefined; all?: boolean }): Promise<AlertView[]> {
      const tenantId = await resolveTenantFilter(pool, actor, tenant)
      return (await listAlerts(pool, { tenantId, open: !all, limit: MAX_LISTED })).map(alertView)
    },
    async rules(tenant: string): Promise<AlertRulesView> {
      const { id } = await requireTenant(pool, actor, tenant)
      return rulesView(id, await readTenantThresholds(pool, id))
    },
    /** The current values that the rules compare with their thresholds. A rule without a value has nothing to report. */
    async values(tenant: string): Promise<AlertValue[]> {
      const { id } = await requireTenant(pool, actor, tenant)
      const now = await databaseNow(pool)
      const silences = (await listSourceRhythms(pool, id)).flatMap(({ rhythm, ...source }) =>
        rhythm === null ? [] : [silenceReading({ ...source, rhythm })],
      )
      const lag = await oldestUnread(log).then(
        oldestAt => lagReadings([id], oldestAt, now),
        error => {
          if (error instanceof LogUnavailable) return []
          throw error
        },
      )
      const readings = [...lag, ...(await readValues(pool, id)), ...silences]
      return readings.map(({ rule, subject, value, summary }) => ({
        ...{ rule, subject: subject === '' ? null : subject, value, summary },
      }))
    },
    async setRules(tenant: string, change: RulesChange): Promise<AlertRulesView> {
      throwIfInvalid(Object.entries(change).flatMap(([rule, value]) => validateThreshold(rule, value)))
      const { id } = await requireTenant(pool, actor, tenant)
      return inTransaction(pool, async client => {
        await lockTenant(client, id)
        const own = await readTenantThresholds(client, id)
        const changed = { ...own }
        for (const [rule, value] of Object.entries(change) as [Rule, number | null | 'default'][])
          if (value === 'default') delete changed[rule]
          else changed[rule] = value
        await saveThresholds(client, id, changed)
        const after = rulesView(id, changed)
        const target = publicTenantId(id)
        const audited = { action: 'alert_rules.update', target, tenantId: id }
        await recordChange(client, actor, { ...audited, before: rulesView(id, own), after })
        return after
      })
    },
  }
}

function validateThreshold(rule: string, value: unknown) {
  const pointer = `/${rule}`
  if (!(RULE_NAMES as string[]).includes(rule))
    return [{ pointer, message: `is not a rule; the rules are ${RULE_NAMES.join(', ')}` }]
  const { least, most } = RULES[rule as Rule]
  const isValid =
    value === null || value === 'default' || (typeof value === 'number' && value >= least && value <= most)
  const range = `from ${least} to ${most}`
  return isValid ? [] : [{ pointer, message: `must be a number ${range}, null (off) or "default"` }]
}

function rulesView(tenantId: number, own: Partial<Thresholds>): AlertRulesView {
  return { tenant: publicTenantId(tenantId), ...withDefaultThresholds(own) }
}

function alertView(alert: Alert): AlertView {
  return {
    id: alert.id,
    tenant: publicTenantId(alert.tenantId),
    rule: alert.rule,
    subject: alert.subject === '' ? null : alert.subject,
    state: alert.state === 'resolved' ? 'resolved' : 'raised',
    summary: alert.summary,
    value: alert.value,
    threshold: alert.threshold,
    raised_at: (alert.raisedAt ?? alert.beganAt).toISOString(),
    resolved_at: alert.resolvedAt?.toISOString() ?? null,
  }
}

export const AlertView = Type.Object(
  {
    id: Uuid,
    tenant: Type.String(),
    rule: Type.Enum([...RULE_NAMES]),
    subject: Nullable(Type.String({ description: 'source_silent: the source id; mrr_drop: the currency' })),
    state: Type.Enum(['raised', 'resolved']),
    summary: Type.String({ description: 'The alert in one sentence' }),
    value: Type.Number(),
    threshold: Type.Number(),
    raised_at: Timestamp,
    resolved_at: NullableTimestamp,
  },
  { title: 'Alert', description: 'A rule whose threshold was exceeded' },
)
export type AlertView = Static<typeof AlertView>

export const AlertValue = Type.Object(
  {
    rule: Type.Enum([...RULE_NAMES]),
    subject: Nullable(Type.String({ description: 'source_silent: the source id; mrr_drop: the currency' })),
    value: Type.Number(),
    summary: Type.String({ description: 'The alert in one sentence' }),
  },
  { title: 'AlertValue', description: 'A value that a rule compares with its threshold' },
)
export type AlertValue = Static<typeof AlertValue>

const threshold = (rule: keyof typeof RULES) =>
  Nullable(Type.Number({ description: `${RULES[rule].means}; from ${RULES[rule].least} to ${RULES[rule].most}` }))

export const AlertRules = {
  lag: threshold('lag'),
  refused_share: threshold('refused_share'),
  dead_letters: threshold('dead_letters'),
  source_silent: threshold('source_silent'),
  mrr_drop: threshold('mrr_drop'),
}

/** The threshold of each rule; null: the rule is off. */
export const AlertRulesView = Type.Object(
  { tenant: Type.String(), ...AlertRules },
  { title: 'AlertRules', description: 'The threshold of each rule; null: the rule is off' },
)
export type AlertRulesView = Static<typeof AlertRulesView>
