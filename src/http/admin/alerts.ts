import { Type } from 'typebox'
import { AlertRules, AlertRulesView, AlertView } from '../../admin/alerts.ts'
import { Nullable } from '../../domain/shapes.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { byTenant, whole } from './schemas.ts'

const Threshold = Type.Optional(Nullable(Type.Union([Type.Number(), Type.Literal('default')])))
const RulesBody = Type.Object(Object.fromEntries(Object.keys(AlertRules).map(rule => [rule, Threshold])), {
  ...whole,
  minProperties: 1,
  examples: [{ lag: 600, mrr_drop: 0.05, source_silent: null }],
})

export function alertRoutes(app: App, parts: { admin: RequestAdmin }): void {
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
}
