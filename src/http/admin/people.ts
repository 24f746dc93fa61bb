import { Readable } from 'node:stream'
import { PersonView, SplitPeople } from '../../admin/people.ts'
import { OpenObject } from '../../domain/shapes.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { sendJson } from '../paging.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { ofTenant, whole } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }

const ById = Type.Object({
  id: Type.String({
    description:
      'A profile id, e-mail address, user id, contact id or visitor id, optionally with its kind: user:…, contact:…, visitor:… or email:…',
  }),
})
const tenant = Type.String({ description: 'Id or name' })

export function peopleRoutes(app: App, parts: { admin: RequestAdmin }): void {
  readRoutes(app, parts)
  changeRoutes(app, parts)
}

function readRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  adminRoutes(app, { admin }, 'Admin: people').route('GET', '/admin/v1/people/:id', {
    summary: 'Get a person',
    description:
      'The identifiers of a person: when each was linked, by which event, and whether the link is verified. Find the person by profile id, e-mail address, user id, contact id or visitor id. If an identifier matches several people (409), prefix it with its kind: `user:…`, `contact:…`, `visitor:…` or `email:…`.',
    problems: [409],
    params: ById,
    query: ofTenant,
    returns: PersonView,
    run: (admin, { params, query }) => admin.people.show({ tenant: query.tenant, id: params.id }),
  })
  app.get(
    '/admin/v1/people/:id/timeline',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Get the timeline of a person',
        description:
          'Conversions, contact, orders, billing accounts, and up to 500 events of the last 365 days. The objects have the same format as in the export. The export contains all events.',
        params: ById,
        querystring: ofTenant,
        response: { 200: Type.Array(OpenObject()) },
      },
    },
    async (request, reply) => {
      const { tenant } = request.query
      const texts = await admin(request).people.timeline({ tenant, id: request.params.id })
      return sendJson(reply, `[${texts.join(',')}]`)
    },
  )
  app.get(
    '/admin/v1/people/:id/export',
    {
      config: { problems: [409], role: 'admin' },
      schema: {
        ...documented,
        summary: 'Export the data of a person',
        description:
          'Identifiers and their origin, contact, conversions, orders, billing accounts and events. Each object has a `type`. One object per line (ndjson) or one array (json). The export leaves out identifiers that may belong to another person: verified identifiers that only unverified input (events sent with a public tracking key) links to the identifier in the request, and all other identifiers if the identifier in the request is unverified. The first object then has `covers: identifier`, and `not_covered` lists the kinds of the identifiers that were left out. Send `confirm_profile=true` to include them.',
        params: ById,
        querystring: Type.Object({
          tenant,
          format: Type.Enum(['ndjson', 'json'], {
            default: 'ndjson',
            description: 'One object per line, or one array',
          }),
          confirm_profile: Type.Optional(
            Type.Boolean({
              description: 'Export the whole profile, including identifiers that may belong to another person',
            }),
          ),
        }),
        response: {
          200: {
            description: 'The data of the person',
            content: {
              'application/x-ndjson': { schema: Type.String() },
              'application/json': { schema: Type.Array(OpenObject()) },
            },
          },
        },
      },
    },
    async (request, reply) => {
      const { format } = request.query
      const text = await admin(request).people.export({ ...request.query, id: request.params.id })
      const type = format === 'json' ? 'application/json; charset=utf-8' : 'application/x-ndjson'
      // The schema describes the content; the stream is sent as it is.
      return reply.header('content-type', type).send(Readable.from(text) as never)
    },
  )
}

function changeRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route } = adminRoutes(app, parts, 'Admin: people')
  route('POST', '/admin/v1/people/:id/merge', {
    summary: 'Merge two people',
    description:
      'Merges this person into the person `into`. Events, sales and billing data change immediately. 409 if both identifiers belong to the same person already. `POST …/split` reverts a merge.',
    problems: [409],
    params: ById,
    body: Type.Object(
      { tenant, into: Type.String({ description: 'The person that keeps its profile id' }) },
      { ...whole, examples: [{ tenant: 'acme', into: 'ada@example.com' }] },
    ),
    returns: PersonView,
    run: (admin, { params, body }) => admin.people.merge({ id: params.id, ...body }),
  })
  route('POST', '/admin/v1/people/:id/verify', {
    summary: 'Verify an identifier of a person',
    description:
      'Confirms a link that only unverified senders reported. Exports and erasures that start from the identifier then cover the whole person.',
    problems: [409],
    params: ById,
    body: Type.Object(
      { tenant, name: Type.String({ description: 'The identifier to verify' }) },
      { ...whole, examples: [{ tenant: 'acme', name: 'user:ada' }] },
    ),
    returns: PersonView,
    run: (admin, { params, body }) => admin.people.verify({ id: params.id, ...body }),
  })
  route('POST', '/admin/v1/people/:id/split', {
    summary: 'Unlink an identifier from a person',
    description:
      'Kontor recomputes events, conversions and attribution without the link. The identifier stays unlinked until you merge it again.',
    problems: [409],
    params: ById,
    body: Type.Object(
      { tenant, name: Type.String({ description: 'The identifier to unlink' }) },
      { ...whole, examples: [{ tenant: 'acme', name: 'visitor:v-81' }] },
    ),
    returns: SplitPeople,
    run: (admin, { params, body }) => admin.people.split({ id: params.id, ...body }),
  })
}
