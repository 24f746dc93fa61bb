import { Readable } from 'node:stream'
import { Type } from 'typebox'
import { PersonView, SplitPeople } from '../../admin/people.ts'
import { OpenObject } from '../../domain/shapes.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { whole } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }

const ById = Type.Object({
  id: Type.String({
    description:
      'A profile id, an e-mail, a user id, a contact id or a visitor; user:…, contact:…, visitor:… or email:… says which',
  }),
})
const tenant = Type.String({ description: 'Id or name' })

export function peopleRoutes(app: App, { admin }: { admin: AdminOf }): void {
  readRoutes(app, admin)
  changeRoutes(app, admin)
}

function readRoutes(app: App, admin: AdminOf): void {
  app.get(
    '/admin/v1/people/:id',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Show a person: what they are known by, since when and why',
        description:
          'By profile id, e-mail, user id, contact id or visitor; `user:…`, `contact:…`, `visitor:…` or `email:…` says which, where a name is more than one person (409).',
        params: ById,
        querystring: Type.Object({ tenant }),
        response: { 200: PersonView },
      },
    },
    async request => admin(request).people.show({ tenant: request.query.tenant, id: request.params.id }),
  )
  app.get(
    '/admin/v1/people/:id/export',
    {
      config: { problems: [409], role: 'admin' },
      schema: {
        ...documented,
        summary: 'Export everything that is held of a person',
        description:
          'Names, where they came from, contact, conversions, orders, billing accounts and events, told apart by type: one a line (ndjson), or an array (json).',
        params: ById,
        querystring: Type.Object({
          tenant,
          format: Type.Enum(['ndjson', 'json'], { default: 'ndjson' }),
        }),
        response: {
          200: {
            description: 'What is held of the person',
            content: {
              'application/x-ndjson': { schema: Type.String() },
              'application/json': { schema: Type.Array(OpenObject()) },
            },
          },
        },
      },
    },
    async (request, reply) => {
      const { tenant, format } = request.query
      const text = await admin(request).people.export({ tenant, id: request.params.id, format })
      const type = format === 'json' ? 'application/json; charset=utf-8' : 'application/x-ndjson'
      // the schema says what the text is; it goes out as it comes
      return reply.header('content-type', type).send(Readable.from(text) as never)
    },
  )
}

function changeRoutes(app: App, admin: AdminOf): void {
  app.post(
    '/admin/v1/people/:id/merge',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Make two people one: this one becomes part of the other',
        description:
          'Events, sales and billing follow at once. 409 where they are one person already, or would have more than 200 names together. `POST …/split` undoes it.',
        params: ById,
        body: Type.Object(
          { tenant, into: Type.String({ description: 'Whoever keeps their profile id' }) },
          { ...whole, examples: [{ tenant: 'acme', into: 'ada@example.com' }] },
        ),
        response: { 200: PersonView },
      },
    },
    async request => admin(request).people.merge({ id: request.params.id, ...request.body }),
  )
  app.post(
    '/admin/v1/people/:id/split',
    {
      config: { problems: [409] },
      schema: {
        ...documented,
        summary: 'Undo the join that brought a name together with the person',
        description:
          'Events, conversions and attribution follow, as they would be without the join. What names both together again joins them again.',
        params: ById,
        body: Type.Object(
          { tenant, name: Type.String({ description: 'The name to part from the person' }) },
          { ...whole, examples: [{ tenant: 'acme', name: 'visitor:v-81' }] },
        ),
        response: { 200: SplitPeople },
      },
    },
    async request => admin(request).people.split({ id: request.params.id, ...request.body }),
  )
}
