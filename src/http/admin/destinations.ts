import {
  CreatedDestination,
  DELIVERY_OUTCOMES,
  DeliveryView,
  DestinationTest,
  DestinationView,
  RetriedMessages,
  SentMessage,
} from '../../admin/destinations.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { DestinationChangeBody, KeyRotationBody, NewDestinationBody, settingsIn, whole } from './schemas.ts'

const MESSAGE = '^msg_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
const MESSAGE_EXAMPLE = 'msg_0197f6d2-7c1e-7000-8a51-9b1f3a2c4d5e'

export function destinationRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route, list, pages } = adminRoutes(app, parts, 'Admin: destinations')
  list('/admin/v1/destinations', {
    summary: 'List destinations',
    description:
      'The destinations of a tenant with their settings, waiting messages, last success and failure, and why they were disabled.',
    problems: [404],
    query: Type.Object({ tenant: Type.String({ description: 'Id or name' }) }),
    item: DestinationView,
    run: (admin, { query }) => admin.destinations.list(query.tenant),
  })
  route('POST', '/admin/v1/destinations', {
    summary: 'Create a destination',
    description:
      'Kontor sends new data that matches `what`, `event_types` and `alert_rules` to `url`. Webhooks are signed according to Standard Webhooks. The secret is shown only in this response. Private network addresses are rejected unless KONTOR_ALLOW_PRIVATE_DESTINATIONS is true. A tenant can have 100 destinations.',
    problems: [404],
    body: NewDestinationBody,
    isValidatedByAdmin: true,
    returns: CreatedDestination,
    status: 201,
    hasLocation: true,
    run: (admin, { body }) => admin.destinations.create(settingsIn(body) as { tenant: string }),
  })
  route('GET', '/admin/v1/destinations/:id', {
    summary: 'Get a destination',
    description: 'Settings, health and counts of one destination. The secret is shown only on creation and rotation.',
    returns: DestinationView,
    run: (admin, { params }) => admin.destinations.show(params.id),
  })
  route('PATCH', '/admin/v1/destinations/:id', {
    summary: 'Update a destination',
    description:
      'Settings that are absent stay unchanged. Waiting messages are sent to the new address. Use `POST …/rotate` to change the secret.',
    body: DestinationChangeBody,
    isValidatedByAdmin: true,
    returns: DestinationView,
    run: (admin, { params, body }) => admin.destinations.update(params.id, settingsIn(body)),
  })
  route('DELETE', '/admin/v1/destinations/:id', {
    summary: 'Delete a destination',
    description: 'Its waiting messages and its list of attempts are deleted too. To pause it, disable it instead.',
    returns: Type.Null(),
    status: 204,
    run: async (admin, { params }) => {
      await admin.destinations.delete(params.id)
      return null
    },
  })
  route('POST', '/admin/v1/destinations/:id/rotate', {
    summary: 'Rotate the secret of a destination',
    description:
      'The new secret is shown only in this response. For `overlap_hours` (24), messages are signed with both secrets, so that receivers can switch without downtime. 409 if the destination has no secret: e-mails and chat messages are not signed.',
    problems: [409],
    body: KeyRotationBody,
    returns: CreatedDestination,
    run: (admin, { params, body }) => admin.destinations.rotate(params.id, { overlapHours: body.overlap_hours }),
  })
  for (const verb of ['enable', 'disable'] as const)
    route('POST', `/admin/v1/destinations/:id/${verb}`, {
      summary: verb === 'enable' ? 'Enable a destination' : 'Disable a destination',
      description:
        'Role: `operator`. A destination that returns 410, or has no success for five days, is disabled automatically. When it is enabled again, waiting messages are sent first. Use `POST …/replay` to send what occurred while it was disabled.',
      role: 'operator',
      returns: DestinationView,
      run: (admin, { params }) => admin.destinations.setEnabled(params.id, verb === 'enable'),
    })
  route('POST', '/admin/v1/destinations/:id/test', {
    summary: 'Send a test message',
    description:
      'Role: `operator`. Sends one signed message of type kontor.test without retries, even to a disabled destination. The response has the status, the duration and the beginning of the response body.',
    role: 'operator',
    returns: DestinationTest,
    run: (admin, { params }) => admin.destinations.test(params.id),
  })
  pages('/admin/v1/destinations/:id/deliveries', {
    summary: 'List delivery attempts',
    description:
      'Newest first, with status, duration and the beginning of the response body. A message is attempted up to ten times within two and a half days. Kept for 30 days by default.',
    query: {
      outcome: Type.Optional(Type.Enum([...DELIVERY_OUTCOMES], { description: 'Only attempts with this outcome' })),
      message: Type.Optional(
        Type.String({
          pattern: MESSAGE,
          examples: [MESSAGE_EXAMPLE],
          description: 'Id of a message: msg_…. The message of an event is msg_ and the event id',
        }),
      ),
    },
    item: DeliveryView,
    run: (admin, { params, query }, { limit, after }) =>
      admin.destinations.deliveries(params.id, {
        limit,
        outcome: query.outcome ?? null,
        message: query.message?.slice('msg_'.length) ?? null,
        before: after ? { attemptedAt: after.at, id: after.id } : null,
      }),
    placeOf: ({ attempted_at, id }) => [attempted_at, id.replace(/^msg_/, '')],
  })
  route('GET', '/admin/v1/destinations/:id/message', {
    summary: 'Get the body of a message',
    description: 'As it is sent to the destination. Messages are kept for 30 days by default.',
    query: Type.Object({
      message: Type.String({ pattern: MESSAGE, examples: [MESSAGE_EXAMPLE], description: 'Id of a message: msg_…' }),
    }),
    returns: SentMessage,
    run: (admin, { params, query }) => admin.destinations.message(params.id, query.message.slice('msg_'.length)),
  })
  route('POST', '/admin/v1/destinations/:id/retry', {
    summary: 'Retry waiting messages now',
    description:
      'Role: `operator`. Sends all messages that wait for a retry now, instead of at the time of their next attempt. 409 if the destination is disabled.',
    role: 'operator',
    problems: [409],
    returns: RetriedMessages,
    run: (admin, { params }) => admin.destinations.retry(params.id),
  })
  route('POST', '/admin/v1/destinations/:id/replay', {
    summary: 'Replay messages',
    description:
      'Role: `operator`. Sends all messages since a time again, delivered or not. `webhook-id` stays the same, so receivers can detect duplicates. 409 if the destination is disabled.',
    role: 'operator',
    problems: [409],
    body: Type.Object(
      { since: Type.String({ format: 'timestamp' }) },
      { ...whole, examples: [{ since: '2026-01-31T09:30:00Z' }] },
    ),
    returns: Type.Object({ id: Type.String(), since: Type.String(), queued: Type.Integer() }),
    run: (admin, { params, body }) => admin.destinations.replay(params.id, body.since),
  })
}
