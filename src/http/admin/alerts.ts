import { Type } from 'typebox'
import { AlertRules, AlertRulesView, AlertView } from '../../admin/alerts.ts'
import { Nullable } from '../../domain/shapes.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { RequestAdmin } from './operator.ts'
import { ById, byTenant, List, whole } from './schemas.ts'

const documented = { tags: ['Admin: alerts'], security: security.admin }

const Threshold = Type.Optional(Nullable(Type.Union([Type.Number(), Type.Literal('default')])))
const RulesBody = Type.Object(Object.fromEntries(Object.keys(AlertRules).map(rule => [rule, Threshold])), {
  ...whole,
  minProperties: 1,
  examples: [{ lag: 600, mrr_drop: 0.05, source_silent: null }],
})

export function alertRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  app.get(
    '/admin/v1/alerts',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List alerts',
        description:
          'Alerts on lag, rejected webhooks, dead letters, silent sources and lost MRR; newest first, at most 200. An alert is resolved automatically when its value recovers. Without `tenant`: alerts of all tenants that the key can access.',
        querystring: Type.Object({
          ...byTenant,
          state: Type.Enum(['raised', 'all'], {
            default: 'raised',
            description: 'Active alerts, or all alerts of the last 90 days',
          }),
        }),
        response: { 200: List(AlertView) },
      },
    },
    async request => ({
      results: await admin(request).alerts.list({
        tenant: request.query.tenant,
        all: request.query.state === 'all',
      }),
      next_cursor: null,
    }),
  )
  app.get(
    '/admin/v1/tenants/:id/alert-rules',
    {
      schema: {
        ...documented,
        summary: 'Get the alert rules of a tenant',
        description: 'The threshold of each rule. `null`: the rule is off.',
        params: ById,
        response: { 200: AlertRulesView },
      },
    },
    async request => admin(request).alerts.rules(request.params.id),
  )
  app.patch(
    '/admin/v1/tenants/:id/alert-rules',
    {
      schema: {
        ...documented,
        summary: 'Update the alert rules of a tenant',
        description:
          'Rules that are absent stay unchanged; null turns a rule off; `default` restores the default threshold.',
        params: ById,
        body: RulesBody,
        response: { 200: AlertRulesView },
      },
    },
    async request => admin(request).alerts.setRules(request.params.id, request.body),
  )
}
