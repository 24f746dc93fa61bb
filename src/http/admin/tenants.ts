import { PolicyView, TenantView } from '../../admin/views.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById, List, NewTenantBody, PolicyBody, TenantChangeBody } from './schemas.ts'

const documented = { tags: ['Admin: tenants'], security: security.admin }

export function tenantRoutes(app: App, { admin }: { admin: AdminOf }): void {
  app.get(
    '/admin/v1/tenants',
    { schema: { ...documented, summary: 'List tenants', response: { 200: List(TenantView) } } },
    async request => ({ results: await admin(request).tenants.list(), next_cursor: null }),
  )
  app.post(
    '/admin/v1/tenants',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Create a tenant',
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
