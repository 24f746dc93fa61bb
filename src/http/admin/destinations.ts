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
import type { AdminOf } from './operator.ts'
import {
  ById,
  DestinationChangeBody,
  KeyRotationBody,
  List,
  NewDestinationBody,
  settingsIn,
  whole,
} from './schemas.ts'

const MESSAGE = '^msg_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
const documented = { tags: ['Admin: destinations'], security: security.admin }

export function destinationRoutes(app: App, { admin }: { admin: AdminOf }): void {
  collectionRoutes(app, admin)
  itemRoutes(app, admin)
  switchRoutes(app, admin)
  deliveryRoutes(app, admin)
}

function collectionRoutes(app: App, admin: AdminOf): void {
  app.get(
    '/admin/v1/destinations',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List the destinations of a tenant, with how sending to them goes',
        description:
          'Each with its settings, what waits, the last success and failure, and why it was disabled, if it was.',
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
        summary:
          'Create a destination: from now on it is sent what it wants. Its secret is shown only in this response',
        description:
          'What takes effect from now on and is wanted (`what`, `event_types`) is POSTed to `url`, signed as Standard Webhooks say. Addresses of private networks are refused unless the installation allows them. A tenant may have 100.',
        body: NewDestinationBody,
        response: { 201: CreatedDestination },
      },
    },
    async (request, reply) => {
      const made = await admin(request).destinations.create(settingsIn(request.body) as { tenant: string })
      return reply.code(201).header('location', `/admin/v1/destinations/${made.id}`).send(made)
    },
  )
}

function itemRoutes(app: App, admin: AdminOf): void {
  app.get(
    '/admin/v1/destinations/:id',
    {
      schema: {
        ...documented,
        summary: 'Get a destination, without its secret',
        description:
          'Settings, health and counts of one destination. The secret was shown when it was made, and is shown by a rotation.',
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
        summary: 'Change settings; those not given stay as they are',
        description:
          'What is still to be sent goes to the new address. The secret is changed by `POST …/rotate`.',
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
        summary: 'Delete a destination, with what was still to be sent to it',
        description:
          'Nothing more is sent, and the list of its attempts goes with it. To stop for a while, disable it.',
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

function switchRoutes(app: App, admin: AdminOf): void {
  app.post(
    '/admin/v1/destinations/:id/rotate',
    {
      schema: {
        ...documented,
        summary: 'Replace the secret; messages are signed with the previous one too for a while',
        description:
          'The new secret is shown only in this response. For `overlap_hours` (24) messages carry a signature by each of the two, so that receivers can change over without a gap.',
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
          summary: enabled
            ? 'Send again: first what was still to be sent. What came meanwhile comes by replay'
            : 'Send nothing more until it is enabled again',
          description:
            'Role: `operator`. A destination that answers 410, or five days without a success, is disabled by itself; what came while it was disabled is sent by `POST …/replay`.',
          params: ById,
          response: { 200: DestinationView },
        },
      },
      async request => admin(request).destinations.setEnabled(request.params.id, enabled),
    )
}

function deliveryRoutes(app: App, admin: AdminOf): void {
  app.post(
    '/admin/v1/destinations/:id/test',
    {
      config: { role: 'operator', body: 'none' },
      schema: {
        ...documented,
        summary: 'Send a signed message of type kontor.test now, and show the answer',
        description:
          'Role: `operator`. Once, without retries, also while it is disabled. The response tells the status, the time it took and the beginning of what was answered.',
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
        summary: 'List attempts to deliver, newest first, with what was answered',
        description:
          'One row an attempt, with status, duration and the beginning of the answer; a message is tried up to ten times within two and a half days. Kept for 30 days unless set otherwise.',
        params: ById,
        querystring: Type.Object({
          outcome: Type.Optional(Type.Enum([...DELIVERY_OUTCOMES])),
          message: Type.Optional(
            Type.String({
              pattern: MESSAGE,
              description: 'Of one message: msg_…; that of an event is msg_ and the id of the event',
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
        summary: 'Send everything since then once more, delivered or not, under the same ids',
        description:
          'Role: `operator`. Receivers tell repeats by `webhook-id`, which stays the same. 409 while the destination is disabled.',
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
