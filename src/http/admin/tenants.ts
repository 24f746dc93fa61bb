import { PolicyView } from '../../admin/policies.ts'
import { TenantView } from '../../admin/tenants.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { RequestAdmin } from './operator.ts'
import { ById, List, NewTenantBody, PolicyBody, TenantChangeBody } from './schemas.ts'

const documented = { tags: ['Admin: tenants'], security: security.admin }

export function tenantRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  app.get(
    '/admin/v1/tenants',
    {
      schema: {
        ...documented,
        summary: 'List tenants',
        description: 'All tenants, or the one that the key is bound to.',
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
          'The data, keys and sources of tenants are isolated from each other. A new tenant has no keys: see `POST /admin/v1/keys`. 409 if the name is taken.',
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
        summary: 'Get a tenant',
        description:
          'By id or name, with its settings: conversion types, maximum age of events, handling of IP addresses.',
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
        summary: 'Update a tenant',
        description:
          'Conversion types, maximum age of events, handling of IP addresses. Fields that are absent stay unchanged. Changes apply to new data on every node within two seconds, not to existing data.',
        params: ById,
        body: TenantChangeBody,
        response: { 200: TenantView },
      },
    },
    async request => admin(request).tenants.update(request.params.id, request.body),
  )
  policyRoutes(app, { admin })
}

function policyRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  app.get(
    '/admin/v1/tenants/:id/policy',
    {
      schema: {
        ...documented,
        summary: 'Get the MRR policy of a tenant',
        description:
          'How pauses, trials and unpaid invoices affect MRR, the time zone, the base of retention, and whether reports use the policy yet (`applied`).',
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
        summary: 'Update the MRR policy of a tenant',
        description:
          'Fields that are absent stay unchanged. Reports use the new policy immediately, or all at once when the ledger has been restated (`applied`).',
        params: ById,
        body: PolicyBody,
        response: { 200: PolicyView },
      },
    },
    async request => admin(request).policies.set(request.params.id, request.body),
  )
}
