import { Type } from 'typebox'
import { CreatedSource, RotatedSource, SourceView } from '../../admin/sources.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById, List, NewSourceBody, RotationBody, SourceChangeBody, settingsIn } from './schemas.ts'

const documented = { tags: ['Admin: sources'], security: security.admin }

export function sourceRoutes(app: App, { admin }: { admin: AdminOf }): void {
  collectionRoutes(app, admin)
  itemRoutes(app, admin)
  actionRoutes(app, admin)
}

function collectionRoutes(app: App, admin: AdminOf): void {
  app.get(
    '/admin/v1/sources',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List the sources of a tenant',
        description: 'Each with its settings and its address. Tokens and secrets are not shown again.',
        querystring: Type.Object({ tenant: Type.String({ description: 'Id or name' }) }),
        response: { 200: List(SourceView) },
      },
    },
    async request => ({
      results: await admin(request).sources.list(request.query.tenant),
      next_cursor: null,
    }),
  )
  app.post(
    '/admin/v1/sources',
    {
      config: { problems: [404] },
      // The settings are checked by admin, whose messages are better than the schema's.
      attachValidation: true,
      schema: {
        ...documented,
        summary: 'Create a source; its token and secret are shown only in this response',
        description:
          'Events are posted to `POST /ingest/inbound/:id` from now on. `preset` sets a source up for a provider (Stripe, Shopify …): how it signs, and what its events mean.',
        body: NewSourceBody,
        response: { 201: CreatedSource },
      },
    },
    async (request, reply) => {
      const source = await admin(request).sources.create(
        settingsIn(request.body) as { tenant: string; type: string },
      )
      return reply.code(201).header('location', `/admin/v1/sources/${source.id}`).send(source)
    },
  )
}

function itemRoutes(app: App, admin: AdminOf): void {
  app.get(
    '/admin/v1/sources/:id',
    {
      schema: {
        ...documented,
        summary: 'Get a source, without its token and secret',
        description: 'Settings, state and who made it.',
        params: ById,
        response: { 200: SourceView },
      },
    },
    async request => admin(request).sources.show(request.params.id),
  )
  app.patch(
    '/admin/v1/sources/:id',
    {
      attachValidation: true,
      schema: {
        ...documented,
        summary: 'Change settings; those not given stay as they are',
        description:
          'They hold for what comes in within two seconds on every node. Token and secret are changed by `POST …/rotate`.',
        params: ById,
        body: SourceChangeBody,
        response: { 200: SourceView },
      },
    },
    async request => admin(request).sources.update(request.params.id, settingsIn(request.body)),
  )
  app.delete(
    '/admin/v1/sources/:id',
    {
      config: { body: 'none' },
      schema: {
        ...documented,
        summary: 'Delete a source; its events are kept',
        description: 'Whoever still sends to it is answered 404. To stop for a while, disable it.',
        params: ById,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      await admin(request).sources.delete(request.params.id)
      return reply.code(204).send(null)
    },
  )
}

function actionRoutes(app: App, admin: AdminOf): void {
  app.post(
    '/admin/v1/sources/:id/rotate',
    {
      schema: {
        ...documented,
        summary: 'Replace the token or the signing secret; the previous one stays valid for a while',
        description:
          'The new value is shown only in this response. Both are taken for `overlap_hours` (24), so that a sender can change over without a gap.',
        params: ById,
        body: RotationBody,
        response: { 200: RotatedSource },
      },
    },
    async request => {
      const { what, value, overlap_hours } = request.body
      return admin(request).sources.rotate(request.params.id, { what, value, overlapHours: overlap_hours })
    },
  )
  for (const [verb, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    app.post(
      `/admin/v1/sources/:id/${verb}`,
      {
        config: { role: 'operator', body: 'none' },
        schema: {
          ...documented,
          summary: enabled ? 'Accept events again' : 'Refuse events (403) until it is enabled again',
          description:
            'Role: `operator`. It holds within two seconds on every node. What came in before is processed all the same.',
          params: ById,
          response: { 200: SourceView },
        },
      },
      async request => admin(request).sources.setEnabled(request.params.id, enabled),
    )
}
