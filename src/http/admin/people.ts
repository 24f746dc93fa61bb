import { Readable } from 'node:stream'
import { PersonView, SplitPeople } from '../../admin/people.ts'
import { OpenObject } from '../../domain/shapes.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { sendJson } from '../paging.ts'
import type { RequestAdmin } from './routes.ts'
import { whole } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }

const ById = Type.Object({
  id: Type.String({
    description:
      'A profile id, e-mail address, user id, contact id or visitor id, optionally with its kind: user:…, contact:…, visitor:… or email:…',
  }),
})
const tenant = Type.String({ description: 'Id or name' })

export function peopleRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  readRoutes(app, admin)
  changeRoutes(app, admin)
}

function readRoutes(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/people/:id',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Get a person',
        description:
          'The identifiers of a person: when each was linked, by which event, and whether the link is verified. Find the person by profile id, e-mail address, user id, contact id or visitor id. If an identifier matches several people (409), prefix it with its kind: `user:…`, `contact:…`, `visitor:…` or `email:…`.',
        params: ById,
        querystring: Type.Object({ tenant }),
        response: { 200: PersonView },
      },
    },
    async request => admin(request).people.show({ tenant: request.query.tenant, id: request.params.id }),
  )
  app.get(
    '/admin/v1/people/:id/timeline',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Get the timeline of a person',
        description:
          'Conversions, contact, orders, billing accounts, and up to 500 events of the last 365 days. The objects have the form of the export, which has all events.',
        params: ById,
        querystring: Type.Object({ tenant }),
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
          'Identifiers and their origin, contact, conversions, orders, billing accounts and events. Each object has a `type`. One object per line (ndjson) or one array (json). Verified identifiers that only unverified input links to the one in the request are left out. The first object then has `covers: identifier`, the profile and the kinds of these identifiers (`not_covered`); `confirm_profile` includes them.',
        params: ById,
        querystring: Type.Object({
          tenant,
          format: Type.Enum(['ndjson', 'json'], {
            default: 'ndjson',
            description: 'One object per line, or one array',
          }),
          confirm_profile: Type.Optional(
            Type.Boolean({
              description: 'Export the whole profile, also what only unverified input links to the person',
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

function changeRoutes(app: App, admin: RequestAdmin): void {
  app.post(
    '/admin/v1/people/:id/merge',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Merge two people',
        description:
          'This person becomes part of the other. Events, sales and billing change immediately. 409 if both are one person already. `POST …/split` reverts a merge.',
        params: ById,
        body: Type.Object(
          { tenant, into: Type.String({ description: 'The person that keeps its profile id' }) },
          { ...whole, examples: [{ tenant: 'acme', into: 'ada@example.com' }] },
        ),
        response: { 200: PersonView },
      },
    },
    async request => admin(request).people.merge({ id: request.params.id, ...request.body }),
  )
  app.post(
    '/admin/v1/people/:id/verify',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Verify an identifier of a person',
        description:
          'Confirms a link that only unverified input made. Exports and erasures that start from the identifier then cover the whole person.',
        params: ById,
        body: Type.Object(
          { tenant, name: Type.String({ description: 'The identifier to verify' }) },
          { ...whole, examples: [{ tenant: 'acme', name: 'user:ada' }] },
        ),
        response: { 200: PersonView },
      },
    },
    async request => admin(request).people.verify({ id: request.params.id, ...request.body }),
  )
  app.post(
    '/admin/v1/people/:id/split',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Unlink an identifier from a person',
        description:
          'Events, conversions and attribution become what they would be without the link. The identifier stays unlinked until the two are merged again.',
        params: ById,
        body: Type.Object(
          { tenant, name: Type.String({ description: 'The identifier to unlink' }) },
          { ...whole, examples: [{ tenant: 'acme', name: 'visitor:v-81' }] },
        ),
        response: { 200: SplitPeople },
      },
    },
    async request => admin(request).people.split({ id: request.params.id, ...request.body }),
  )
}
