import { Type } from 'typebox'
import { ErasureReceipt } from '../../admin/erasure-run.ts'
import { ErasurePreview, RemovedSuppression, SuppressionList } from '../../admin/erasures.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById, List, whole } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }

// Together with the wait for what is not applied yet, less than a request may take.
const PATIENCE_MS = 15_000

const NewErasure = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    email: Type.Optional(Type.String({ description: 'An e-mail address of the person' })),
    profile: Type.Optional(
      Type.String({ description: 'Instead of email: profile_id of an event or a conversion' }),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ description: 'Only show what it would take, and the names of the person' }),
    ),
    suppress: Type.Optional(
      Type.Boolean({
        description:
          'Record nothing of the person that comes later either: events are dropped, contacts left out, sales kept without a name',
      }),
    ),
    confirm: Type.Optional(
      Type.Boolean({ description: 'Needed for a person with more than 20 names: they have been looked at' }),
    ),
  },
  { ...whole, examples: [{ tenant: 'acme', email: 'ada@example.com' }] },
)

export function erasureRoutes(app: App, { admin }: { admin: AdminOf }): void {
  app.post(
    '/admin/v1/erasures',
    {
      config: { problems: [404, 409] },
      schema: {
        ...documented,
        summary: 'Erase a person: events, identities and contact are deleted, sales are made anonymous',
        description:
          'Responds with 201 when it is done. What takes longer than 15 seconds goes on by itself, also after a crash: 202, and GET /admin/v1/erasures/:id tells how far it is.',
        querystring: Type.Object({}, whole),
        body: NewErasure,
        response: { 200: ErasurePreview, 201: ErasureReceipt, 202: ErasureReceipt },
      },
    },
    async (request, reply) => {
      const { dry_run, ...query } = request.body
      const { erasures } = admin(request)
      if (dry_run) return reply.code(200).send(await erasures.preview(query))
      const receipt = await erasures.start(query, PATIENCE_MS)
      return reply
        .code(receipt.status === 'completed' ? 201 : 202)
        .header('location', `/admin/v1/erasures/${receipt.id}`)
        .send(receipt)
    },
  )
  app.get(
    '/admin/v1/erasures/:id',
    {
      schema: {
        ...documented,
        summary: 'Get the receipt of an erasure, and how far it is',
        description:
          '`running` until everything is done, whatever happens to the process that began it; then `completed`, with counts of what was erased. The receipt names nobody: the subject is a hash.',
        params: ById,
        response: { 200: ErasureReceipt },
      },
    },
    async request => admin(request).erasures.show(request.params.id),
  )
  app.get(
    '/admin/v1/erasures',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List receipts of erasures, newest first: the last 100',
        description:
          'Of one tenant. Receipts name nobody; whoever knows the person can find theirs by `subject_hash`.',
        querystring: Type.Object({ tenant: Type.String({ description: 'Id or name' }) }),
        response: { 200: List(ErasureReceipt) },
      },
    },
    async request => ({
      results: await admin(request).erasures.list(request.query.tenant),
      next_cursor: null,
    }),
  )
}

export function suppressionRoutes(app: App, { admin }: { admin: AdminOf }): void {
  const querystring = Type.Object({ tenant: Type.String({ description: 'Id or name' }) })
  app.get(
    '/admin/v1/suppressions',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List people who were erased and are not recorded again, newest first: the last 1,000',
        description:
          'Only hashes of their names are kept. `not_recorded` counts what came of them and was left out.',
        querystring,
        response: { 200: SuppressionList },
      },
    },
    async request => admin(request).suppressions.list(request.query.tenant),
  )
  app.delete(
    '/admin/v1/suppressions/:id',
    {
      config: { body: 'none' },
      schema: {
        ...documented,
        summary: 'Record somebody again, from now on',
        description:
          'By the id of the list, an e-mail address, or the hash of a name: all names of that person leave the list. What was left out meanwhile does not come back.',
        params: Type.Object({
          id: Type.String({ description: 'An id of the list, an e-mail address, or the hash of a name' }),
        }),
        querystring,
        response: { 200: RemovedSuppression },
      },
    },
    async request =>
      admin(request).suppressions.remove({ tenant: request.query.tenant, id: request.params.id }),
  )
}
