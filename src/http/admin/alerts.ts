import type pg from 'pg'
import { AlertRules, AlertRulesView, AlertValue, AlertView } from '../../admin/alerts.ts'
import { DestinationTest } from '../../admin/destinations.ts'
import { DigestSettings, DigestView } from '../../admin/digests.ts'
import { renderDigest } from '../../domain/alerts/digest.ts'
import { RULE_NAMES } from '../../domain/alerts/rules.ts'
import { Nullable } from '../../domain/shapes.ts'
import { parseTenantId } from '../../domain/tenants/tenants.ts'
import { Type } from '../../domain/typebox.ts'
import { digestReport } from '../../reports/digest.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { byTenant, List, whole } from './schemas.ts'

const Threshold = Type.Optional(Nullable(Type.Union([Type.Number(), Type.Literal('default')])))
const RulesBody = Type.Object(Object.fromEntries(Object.keys(AlertRules).map(rule => [rule, Threshold])), {
  ...whole,
  minProperties: 1,
  examples: [{ lag: 600, mrr_drop: 0.05, source_silent: null }],
})

const DigestBody = Type.Object(
  { weekday: Type.Optional(DigestSettings.weekday), hour: Type.Optional(DigestSettings.hour) },
  { ...whole, minProperties: 1, examples: [{ weekday: 'monday', hour: 8 }] },
)
const DigestPreview = Type.Object({ subject: Type.String(), text: Type.String(), html: Type.String() })

type AlertDeps = { admin: RequestAdmin; pool: pg.Pool; now(): Date; consoleUrl: string | null }

export function alertRoutes(app: App, { pool, now, consoleUrl, ...parts }: AlertDeps): void {
  const { route, list } = adminRoutes(app, parts, 'Admin: alerts')
  list('/admin/v1/alerts', {
    summary: 'List alerts',
    description:
      'Alerts on lag, rejected webhooks, dead letters, silent sources and lost MRR; newest first, at most 200. An alert is resolved automatically when its value recovers. Without `tenant`: alerts of all tenants that the key can access.',
    problems: [404],
    query: Type.Object({
      ...byTenant,
      state: Type.Enum(['raised', 'all'], {
        default: 'raised',
        description: 'Active alerts, or all alerts of the last 90 days',
      }),
    }),
    item: AlertView,
    run: (admin, { query }) => admin.alerts.list({ tenant: query.tenant, all: query.state === 'all' }),
  })
  route('GET', '/admin/v1/tenants/:id/alert-rules', {
    summary: 'Get the alert rules of a tenant',
    description: 'The threshold of each rule. `null`: the rule is off.',
    returns: AlertRulesView,
    run: (admin, { params }) => admin.alerts.rules(params.id),
  })
  route('PATCH', '/admin/v1/tenants/:id/alert-rules', {
    summary: 'Update the alert rules of a tenant',
    description:
      'Rules that are absent stay unchanged; null turns a rule off; `default` restores the default threshold.',
    body: RulesBody,
    returns: AlertRulesView,
    run: (admin, { params, body }) => admin.alerts.setRules(params.id, body),
  })
  list('/admin/v1/tenants/:id/alert-values', {
    summary: 'Get the current values of the alert rules',
    description:
      'The values that Kontor compares with the thresholds, per source for `source_silent` and per currency for `mrr_drop`. A rule for which there is no data has no row.',
    item: AlertValue,
    run: (admin, { params }) => admin.alerts.values(params.id),
  })
  route('POST', '/admin/v1/tenants/:id/alert-test', {
    summary: 'Send a test message for an alert rule',
    description:
      'Role: `operator`. Sends one message of type kontor.test, without retries, to every enabled destination that receives alerts of the rule. `results` has one row per destination, and is empty if no destination receives them.',
    role: 'operator',
    body: Type.Object({ rule: Type.Enum([...RULE_NAMES]) }, { ...whole, examples: [{ rule: 'mrr_drop' }] }),
    returns: List(DestinationTest),
    run: async (admin, { params, body }) => ({
      results: await admin.destinations.testRule(params.id, body.rule),
      next_cursor: null,
    }),
  })
  route('GET', '/admin/v1/tenants/:id/digest', {
    summary: 'Get the schedule of the weekly digest',
    description:
      'Weekday and hour in the time zone of the tenant, the next time, and the recipients: destinations whose `what` contains `digests`.',
    returns: DigestView,
    run: (admin, { params }) => admin.digests.show(params.id),
  })
  route('PATCH', '/admin/v1/tenants/:id/digest', {
    summary: 'Update the schedule of the weekly digest',
    description: 'Settings that are absent stay unchanged. The change itself sends no digest.',
    body: DigestBody,
    returns: DigestView,
    run: (admin, { params, body }) => admin.digests.set(params.id, body),
  })
  route('GET', '/admin/v1/tenants/:id/digest/preview', {
    summary: 'Preview the weekly digest',
    description: 'The e-mail as it would be sent today, about the seven days before today.',
    returns: DigestPreview,
    run: async (admin, { params }) => {
      const { id, name } = await admin.tenants.show(params.id)
      const at = now()
      const digest = await digestReport(pool, { id: parseTenantId(id)!, name }, { due: at, now: at })
      const { subject, text, html } = renderDigest(digest, consoleUrl)
      return { subject, text, html }
    },
  })
}
