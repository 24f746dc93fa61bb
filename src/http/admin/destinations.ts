import { Type } from 'typebox'
import {
  CreatedDestination,
  DELIVERY_OUTCOMES,
  DeliveryView,
  DestinationTest,
  DestinationView,
} from '../../admin/destinations.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeTimeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'
import type { RequestAdmin } from './operator.ts'
import { ById, DestinationChangeBody, KeyRotationBody, List, NewDestinationBody, settingsIn, whole } from './schemas.ts'

const MESSAGE = '^msg_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
const documented = { tags: ['Admin: destinations'], security: security.admin }

export function destinationRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  collectionRoutes(app, admin)
  itemRoutes(app, admin)
  switchRoutes(app, admin)
  deliveryRoutes(app, admin)
}

function collectionRoutes(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/destinations',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List destinations',
        description:
          'The destinations of a tenant with their settings, waiting messages, last success and failure, and why they were disabled.',
        querystring: Type.Object({ tenant: Type.String({ description: 'Id or name' }) }),
        response: { 200: List(DestinationView) },
      },
    },
    async request => ({
      results: await admin(request).destinations.list(request.query.tenant),
      next_cursor: null,
    }),
  )
  app.post(
    '/admin/v1/destinations',
    {
      config: { problems: [404] },
      // The settings are checked by admin, whose messages are better than the schema's.
      attachValidation: true,
      schema: {
        ...documented,
        summary: 'Create a destination',
        description:
          'Everything that takes effect from now on and matches `what` and `event_types` is sent to `url` by POST, signed according to Standard Webhooks. The secret is shown only in this response. Private network addresses are rejected unless the installation allows them. A tenant can have 100 destinations.',
        body: NewDestinationBody,
        response: { 201: CreatedDestination },
      },
    },
    async (request, reply) => {
      const created = await admin(request).destinations.create(settingsIn(request.body) as { tenant: string })
      return reply.code(201).header('location', `/admin/v1/destinations/${created.id}`).send(created)
    },
  )
}

function itemRoutes(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/destinations/:id',
    {
      schema: {
        ...documented,
        summary: 'Get a destination',
        description:
          'Settings, health and counts of one destination. The secret is shown only on creation and rotation.',
        params: ById,
        response: { 200: DestinationView },
      },
    },
    async request => admin(request).destinations.show(request.params.id),
  )
  app.patch(
    '/admin/v1/destinations/:id',
    {
      attachValidation: true,
      schema: {
        ...documented,
        summary: 'Update a destination',
        description:
          'Settings that are absent stay unchanged. Waiting messages are sent to the new address. Use `POST …/rotate` to change the secret.',
        params: ById,
        body: DestinationChangeBody,
        response: { 200: DestinationView },
      },
    },
    async request => admin(request).destinations.update(request.params.id, settingsIn(request.body)),
  )
  app.delete(
    '/admin/v1/destinations/:id',
    {
      config: { body: 'none' },
      schema: {
        ...documented,
        summary: 'Delete a destination',
        description: 'Its waiting messages and its list of attempts are deleted too. To pause it, disable it instead.',
        params: ById,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      await admin(request).destinations.delete(request.params.id)
      return reply.code(204).send(null)
    },
  )
}

function switchRoutes(app: App, admin: RequestAdmin): void {
  app.post(
    '/admin/v1/destinations/:id/rotate',
    {
      schema: {
        ...documented,
        summary: 'Rotate the secret of a destination',
        description:
          'The new secret is shown only in this response. For `overlap_hours` (24), messages are signed with both secrets, so that receivers can switch without downtime.',
        params: ById,
        body: KeyRotationBody,
        response: { 200: CreatedDestination },
      },
    },
    async request =>
      admin(request).destinations.rotate(request.params.id, { overlapHours: request.body.overlap_hours }),
  )
  for (const [verb, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    app.post(
      `/admin/v1/destinations/:id/${verb}`,
      {
        config: { role: 'operator', body: 'none' },
        schema: {
          ...documented,
          summary: enabled ? 'Enable a destination' : 'Disable a destination',
          description:
            'Role: `operator`. A destination that returns 410, or has no success for five days, is disabled automatically. When it is enabled again, waiting messages are sent first. Use `POST …/replay` to send what occurred while it was disabled.',
          params: ById,
          response: { 200: DestinationView },
        },
      },
      async request => admin(request).destinations.setEnabled(request.params.id, enabled),
    )
}

function deliveryRoutes(app: App, admin: RequestAdmin): void {
  app.post(
    '/admin/v1/destinations/:id/test',
    {
      config: { role: 'operator', body: 'none' },
      schema: {
        ...documented,
        summary: 'Send a test message',
        description:
          'Role: `operator`. Sends one signed message of type kontor.test without retries, even to a disabled destination. The response has the status, the duration and the beginning of the response body.',
        params: ById,
        response: { 200: DestinationTest },
      },
    },
    async request => admin(request).destinations.test(request.params.id),
  )
  app.get(
    '/admin/v1/destinations/:id/deliveries',
    {
      schema: {
        ...documented,
        summary: 'List delivery attempts',
        description:
          'Newest first, with status, duration and the beginning of the response body. A message is attempted up to ten times within two and a half days. Kept for 30 days by default.',
        params: ById,
        querystring: Type.Object({
          outcome: Type.Optional(Type.Enum([...DELIVERY_OUTCOMES])),
          message: Type.Optional(
            Type.String({
              pattern: MESSAGE,
              description: 'Id of a message: msg_…. The message of an event is msg_ and the event id',
            }),
          ),
          ...pageParameters,
        }),
        response: { 200: PagedList(DeliveryView) },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const after = decodeTimeCursor(cursor)
      const page = await readPage(
        query,
        limit =>
          admin(request).destinations.deliveries(request.params.id, {
            limit,
            outcome: query.outcome ?? null,
            message: query.message?.slice('msg_'.length) ?? null,
            before: after && { attemptedAt: after.at, id: after.id },
          }),
        last => [last.attempted_at, last.id.replace(/^msg_/, '')],
      )
      return pageBody(page)
    },
  )
  app.post(
    '/admin/v1/destinations/:id/replay',
    {
      config: { role: 'operator', problems: [409] },
      schema: {
        ...documented,
        summary: 'Replay messages',
        description:
          'Role: `operator`. Sends all messages since a time again, delivered or not. `webhook-id` stays the same, so receivers can detect duplicates. 409 if the destination is disabled.',
        params: ById,
        body: Type.Object(
          { since: Type.String({ format: 'timestamp' }) },
          { ...whole, examples: [{ since: '2026-01-31T09:30:00Z' }] },
        ),
        response: {
          200: Type.Object({ id: Type.String(), since: Type.String(), queued: Type.Integer() }),
        },
      },
    },
    async request => admin(request).destinations.replay(request.params.id, request.body.since),
  )
}
