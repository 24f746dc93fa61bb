import { SourceTest } from '../../admin/source-test.ts'
import { CreatedSource, RotatedSource, SourceView } from '../../admin/sources.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { RequestAdmin } from './routes.ts'
import { ById, List, NewSourceBody, RotationBody, SourceChangeBody, settingsIn } from './schemas.ts'

const documented = { tags: ['Admin: sources'], security: security.admin }

export function sourceRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  collectionRoutes(app, admin)
  itemRoutes(app, admin)
  actionRoutes(app, admin)
}

function collectionRoutes(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/sources',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List sources',
        description: 'The sources of a tenant with their settings and URLs. Tokens and secrets are not included.',
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
        summary: 'Create a source',
        description:
          'The token and secret are shown only in this response. Send events to `POST /ingest/inbound/:id`. `preset` configures the source for a provider (Stripe, Shopify …): signature format and meaning of its events.',
        body: NewSourceBody,
        response: { 201: CreatedSource },
      },
    },
    async (request, reply) => {
      const source = await admin(request).sources.create(settingsIn(request.body) as { tenant: string; type: string })
      return reply.code(201).header('location', `/admin/v1/sources/${source.id}`).send(source)
    },
  )
}

function itemRoutes(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/sources/:id',
    {
      schema: {
        ...documented,
        summary: 'Get a source',
        description: 'Settings, state and creator. The token and secret are not included.',
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
        summary: 'Update a source',
        description:
          'Settings that are absent stay unchanged. Changes apply to new requests on every node within two seconds. Use `POST …/rotate` to change the token or secret.',
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
        summary: 'Delete a source',
        description: 'Its events are kept. Further requests to it get 404. To pause it, disable it instead.',
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

function actionRoutes(app: App, admin: RequestAdmin): void {
  app.post(
    '/admin/v1/sources/:id/rotate',
    {
      schema: {
        ...documented,
        summary: 'Rotate the token or signing secret of a source',
        description:
          'The new value is shown only in this response. Both values are valid for `overlap_hours` (24), so that senders can switch without downtime.',
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
          summary: enabled ? 'Enable a source' : 'Disable a source',
          description:
            'Role: `operator`. A disabled source rejects events with 403. Takes effect on every node within two seconds. Events that were accepted before are still processed.',
          params: ById,
          response: { 200: SourceView },
        },
      },
      async request => admin(request).sources.setEnabled(request.params.id, enabled),
    )
}

export function sourceTestRoute(app: App, { admin }: { admin: RequestAdmin }): void {
  app.post(
    '/admin/v1/sources/:id/test',
    {
      config: { role: 'operator', body: 'optional-json' },
      schema: {
        tags: ['Admin: sources'],
        security: security.admin,
        summary: 'Send a test event',
        description:
          'Role: `operator` for the built-in sample, `admin` for a custom body or custom headers. Returns how the event was processed. The sample is a test event: it is listed with `meta.test: true` (and the type kontor.test unless the source sets another) and has a receipt, but does not count in any total, record, conversion, report, delivery or export. An event with a custom body or custom headers counts like any event of the source. The audit log records both.',
        params: ById,
        body: Type.Object(
          {
            body: Type.Optional(
              Type.Unknown({ description: 'The body to send; default: a sample for this type of source' }),
            ),
            headers: Type.Optional(
              Type.Record(Type.String(), Type.String(), { description: 'Added to the headers of the sample' }),
            ),
            wait_seconds: Type.Optional(
              Type.Number({
                ...{ minimum: 0, maximum: 20 },
                description: 'How long to wait until the event is processed; default: 10',
              }),
            ),
          },
          { examples: [{}, { body: { event_type: 'order.shipped', payload: { order_id: 'o-1' } } }] },
        ),
        response: {
          200: SourceTest,
        },
      },
    },
    async request => {
      const { body, headers, wait_seconds: seconds } = request.body
      return admin(request).sourceTests.test(request.params.id, {
        body: body === undefined ? undefined : JSON.stringify(body),
        headers,
        waitMs: seconds === undefined ? undefined : seconds * 1000,
      })
    },
  )
}
