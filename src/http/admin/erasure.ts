import { ErasureReceipt } from '../../admin/erasure-run.ts'
import { ErasurePreview, RemovedSuppression, SuppressionList } from '../../admin/erasures.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { ofTenant, whole } from './schemas.ts'

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
          'Cover the whole profile, including identifiers that may belong to another person, because only unverified input (a public tracking key) links them to this person. By default, they are kept, and `not_covered` lists them',
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

export function erasureRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route, pages, work } = adminRoutes(app, parts, 'Admin: people')
  work('/admin/v1/erasures', {
    summary: 'Erase a person',
    description:
      'Deletes events, identifiers and the contact, and anonymizes sales. 201: completed. 202: it takes longer than 15 seconds and continues in the background, even after a crash; see GET /admin/v1/erasures/:id.',
    problems: [404, 409],
    body: NewErasure,
    preview: { returns: ErasurePreview, run: (admin, query) => admin.erasures.preview(query) },
    start: { returns: ErasureReceipt, run: (admin, query, waitMs) => admin.erasures.start(query, waitMs) },
  })
  route('GET', '/admin/v1/erasures/:id', {
    summary: 'Get an erasure',
    description:
      'The receipt of an erasure: `running`, then `completed` with the number of deleted objects. It contains no personal data: the subject is a hash.',
    returns: ErasureReceipt,
    run: (admin, { params }) => admin.erasures.show(params.id),
  })
  pages('/admin/v1/erasures', {
    summary: 'List erasures',
    description:
      'The receipts of a tenant, newest first. They contain no personal data; find the receipt of a person by `subject_hash`.',
    problems: [404],
    query: ofTenant.properties,
    item: ErasureReceipt,
    run: (admin, { query }, { limit, after }) => admin.erasures.list({ ...query, limit, before: after }),
    placeOf: ({ requested_at, id }) => [requested_at, id],
  })
}

export function suppressionRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route } = adminRoutes(app, parts, 'Admin: people')
  route('GET', '/admin/v1/suppressions', {
    summary: 'List suppressions',
    description:
      'The last 1,000 erased people who are no longer tracked, newest first. Only hashes of their identifiers are stored. `not_recorded` counts the dropped events and records.',
    problems: [404],
    query: ofTenant,
    returns: SuppressionList,
    run: (admin, { query }) => admin.suppressions.list(query.tenant),
  })
  route('DELETE', '/admin/v1/suppressions/:id', {
    summary: 'Delete a suppression',
    description:
      'Tracks the person again from now on. All identifiers of the person are removed from the list. Data that was dropped meanwhile is not restored.',
    params: Type.Object({
      id: Type.String({ description: 'The id of a suppression, an e-mail address, or the hash of an identifier' }),
    }),
    query: ofTenant,
    returns: RemovedSuppression,
    run: (admin, { params, query }) => admin.suppressions.remove({ tenant: query.tenant, id: params.id }),
  })
}
