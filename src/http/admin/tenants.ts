import { PolicyView } from '../../admin/policies.ts'
import { TenantView } from '../../admin/tenants.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById, List, NewTenantBody, PolicyBody, TenantChangeBody } from './schemas.ts'

const documented = { tags: ['Admin: tenants'], security: security.admin }

export function tenantRoutes(app: App, { admin }: { admin: AdminOf }): void {
  app.get(
    '/admin/v1/tenants',
    {
      schema: {
        ...documented,
        summary: 'List tenants',
        description: 'Those that the key sees: all of them, or the one that it is bound to.',
        response: { 200: List(TenantView) },
      },
    },
    async request => ({ results: await admin(request).tenants.list(), next_cursor: null }),
  )
  app.post(
    '/admin/v1/tenants',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Create a tenant',
        description:
          'Its data, keys and sources are apart from those of all others. It has no keys yet: `POST /admin/v1/keys`. 409 where the name is taken.',
        body: NewTenantBody,
        response: { 201: TenantView },
      },
    },
    async (request, reply) => {
      const tenant = await admin(request).tenants.create(request.body)
      return reply.code(201).header('location', `/admin/v1/tenants/${tenant.id}`).send(tenant)
    },
  )
  app.get(
    '/admin/v1/tenants/:id',
    {
      schema: {
        ...documented,
        summary: 'Get a tenant by id or name',
        description:
          'Its settings: what counts as a conversion, how old events may be, what becomes of IP addresses.',
        params: ById,
        response: { 200: TenantView },
      },
    },
    async request => admin(request).tenants.show(request.params.id),
  )
  app.patch(
    '/admin/v1/tenants/:id',
    {
      schema: {
        ...documented,
        summary:
          'Set which event types count as conversions, how old an event may be, and what becomes of IP addresses',
        description:
          'What is left out stays as it is. It holds for what comes in within two seconds on every node, not for what came in before.',
        params: ById,
        body: TenantChangeBody,
        response: { 200: TenantView },
      },
    },
    async request => admin(request).tenants.update(request.params.id, request.body),
  )
  policyRoutes(app, { admin })
}

function policyRoutes(app: App, { admin }: { admin: AdminOf }): void {
  app.get(
    '/admin/v1/tenants/:id/policy',
    {
      schema: {
        ...documented,
        summary: 'Get how a tenant counts its MRR',
        description:
          'What pauses, trials and unpaid invoices do to MRR, its time zone, what retention is measured from, and whether reports follow it yet (`applied`).',
        params: ById,
        response: { 200: PolicyView },
      },
    },
    async request => admin(request).policies.show(request.params.id),
  )
  app.put(
    '/admin/v1/tenants/:id/policy',
    {
      schema: {
        ...documented,
        summary: 'Set how a tenant counts its MRR',
        description:
          'What is absent stays as it is. Reports follow the new policy at once, or all together when the ledger has been restated by it (`applied`).',
        params: ById,
        body: PolicyBody,
        response: { 200: PolicyView },
      },
    },
    async request => admin(request).policies.set(request.params.id, request.body),
  )
}
