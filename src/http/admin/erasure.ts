import { ErasureReceipt } from '../../admin/erasure-run.ts'
import { ErasurePreview, RemovedSuppression, SuppressionList } from '../../admin/erasures.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { RequestAdmin } from './routes.ts'
import { ById, List, whole } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }

// Together with the wait for earlier entries, less than the time limit of a request.
const MAX_WAIT_MS = 15_000

const NewErasure = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    email: Type.Optional(Type.String({ description: 'An e-mail address of the person' })),
    profile: Type.Optional(Type.String({ description: 'Instead of email: profile_id of an event or a conversion' })),
    dry_run: Type.Optional(
      Type.Boolean({ description: 'Preview: return what would be erased and the identifiers of the person' }),
    ),
    suppress: Type.Optional(
      Type.Boolean({
        description:
          'Also stop tracking the person: later events and contacts are dropped, sales are recorded anonymously',
      }),
    ),
    confirm_profile: Type.Optional(
      Type.Boolean({
        description:
          'Cover the whole profile, also what only unverified input links to the person. Without it, these identifiers are listed in `not_covered`',
      }),
    ),
    confirm: Type.Optional(
      Type.Boolean({
        description: 'Required for a person with more than 20 identifiers: confirms that they were reviewed',
      }),
    ),
  },
  {
    title: 'NewErasure',
    description: 'The person to erase',
    ...whole,
    examples: [{ tenant: 'acme', email: 'ada@example.com' }],
  },
)

export function erasureRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  app.post(
    '/admin/v1/erasures',
    {
      config: { problems: [404, 409] },
      schema: {
        ...documented,
        summary: 'Erase a person',
        description:
          'Deletes events, identifiers and the contact, and anonymizes sales. 201: completed. 202: it takes longer than 15 seconds and continues in the background, even after a crash; see GET /admin/v1/erasures/:id.',
        querystring: Type.Object({}, whole),
        body: NewErasure,
        response: { 200: ErasurePreview, 201: ErasureReceipt, 202: ErasureReceipt },
      },
    },
    async (request, reply) => {
      const { dry_run, ...query } = request.body
      const { erasures } = admin(request)
      if (dry_run) return reply.code(200).send(await erasures.preview(query))
      const receipt = await erasures.start(query, MAX_WAIT_MS)
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
        summary: 'Get an erasure',
        description:
          'The receipt of an erasure: `running`, then `completed` with the number of deleted objects. It contains no personal data: the subject is a hash.',
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
        summary: 'List erasures',
        description:
          'The last 100 receipts of a tenant, newest first. They contain no personal data; find the receipt of a person by `subject_hash`.',
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

export function suppressionRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  const querystring = Type.Object({ tenant: Type.String({ description: 'Id or name' }) })
  app.get(
    '/admin/v1/suppressions',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List suppressions',
        description:
          'The last 1,000 erased people who are no longer tracked, newest first. Only hashes of their identifiers are stored. `not_recorded` counts the dropped events and records.',
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
        summary: 'Delete a suppression',
        description:
          'Tracks the person again from now on. All identifiers of the person are removed from the list. Data that was dropped meanwhile is not restored.',
        params: Type.Object({
          id: Type.String({
            description: 'The id of a suppression, an e-mail address, or the hash of an identifier',
          }),
        }),
        querystring,
        response: { 200: RemovedSuppression },
      },
    },
    async request => admin(request).suppressions.remove({ tenant: request.query.tenant, id: request.params.id }),
  )
}
