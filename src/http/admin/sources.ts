import { SourceTest } from '../../admin/source-test.ts'
import { CreatedSource, RotatedSource, SourceView } from '../../admin/sources.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { NewSourceBody, ofTenant, RotationBody, SourceChangeBody, settingsIn } from './schemas.ts'

export function sourceRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route, list } = adminRoutes(app, parts, 'Admin: sources')
  list('/admin/v1/sources', {
    summary: 'List sources',
    description: 'The sources of a tenant with their settings and URLs. Tokens and secrets are not included.',
    problems: [404],
    query: ofTenant,
    item: SourceView,
    run: (admin, { query }) => admin.sources.list(query.tenant),
  })
  route('POST', '/admin/v1/sources', {
    summary: 'Create a source',
    description:
      'The token and secret are shown only in this response. Send events to `POST /ingest/inbound/:id`. `preset` configures the source for a provider (Stripe, Shopify …): signature format and meaning of its events.',
    problems: [404],
    body: NewSourceBody,
    isValidatedByAdmin: true,
    returns: CreatedSource,
    status: 201,
    hasLocation: true,
    run: (admin, { body }) => admin.sources.create(settingsIn(body) as { tenant: string; type: string }),
  })
  route('GET', '/admin/v1/sources/:id', {
    summary: 'Get a source',
    description: 'Settings, state and creator. The token and secret are not included.',
    returns: SourceView,
    run: (admin, { params }) => admin.sources.show(params.id),
  })
  route('PATCH', '/admin/v1/sources/:id', {
    summary: 'Update a source',
    description:
      'Settings that are absent stay unchanged. Changes apply to new requests on every server within two seconds. Use `POST …/rotate` to change the token or secret.',
    body: SourceChangeBody,
    isValidatedByAdmin: true,
    returns: SourceView,
    run: (admin, { params, body }) => admin.sources.update(params.id, settingsIn(body)),
  })
  route('DELETE', '/admin/v1/sources/:id', {
    summary: 'Delete a source',
    description: 'Its events are kept. Further requests to it get 404. To pause it, disable it instead.',
    returns: Type.Null(),
    status: 204,
    run: async (admin, { params }) => {
      await admin.sources.delete(params.id)
      return null
    },
  })
  route('POST', '/admin/v1/sources/:id/rotate', {
    summary: 'Rotate the token or signing secret of a source',
    description:
      'The new value is shown only in this response. Both values are valid for `overlap_hours` (24), so that senders can switch without downtime.',
    body: RotationBody,
    returns: RotatedSource,
    run: (admin, { params, body: { what, value, overlap_hours } }) =>
      admin.sources.rotate(params.id, { what, value, overlapHours: overlap_hours }),
  })
  for (const [verb, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    route('POST', `/admin/v1/sources/:id/${verb}`, {
      summary: enabled ? 'Enable a source' : 'Disable a source',
      description:
        'Role: `operator`. A disabled source rejects events with 403. Takes effect on every server within two seconds. Events that were accepted before are still processed.',
      role: 'operator',
      returns: SourceView,
      run: (admin, { params }) => admin.sources.setEnabled(params.id, enabled),
    })
}

export function sourceTestRoute(app: App, parts: { admin: RequestAdmin }): void {
  const { route } = adminRoutes(app, parts, 'Admin: sources')
  route('POST', '/admin/v1/sources/:id/test', {
    summary: 'Send a test event',
    description:
      'Role: `operator` for the built-in sample, `admin` for a custom body or custom headers. Returns how the event was processed. The sample is a test event: it is listed with `meta.test: true` (and the type kontor.test unless the source sets another) and has a receipt, but does not count in any total, record, conversion, report, delivery or export. An event with a custom body or custom headers counts like any event of the source. The audit log records both.',
    role: 'operator',
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
    isBodyOptional: true,
    returns: SourceTest,
    run: (admin, { params, body: { body, headers, wait_seconds: seconds } }) =>
      admin.sourceTests.test(params.id, {
        body: body === undefined ? undefined : JSON.stringify(body),
        headers,
        waitMs: seconds === undefined ? undefined : seconds * 1000,
      }),
  })
}
