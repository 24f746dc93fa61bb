import { BooksQuery, BooksView, booksView } from '../../admin/books.ts'
import { Type } from '../../domain/typebox.ts'
import { inSnapshot } from '../../reports/question.ts'
import type { App } from '../app.ts'
import type { ReportDeps } from './routes.ts'

/** Closed months and their restatements. */
export function booksRoute(app: App, { pool }: ReportDeps): void {
  const { month, page, page_size } = BooksQuery
  app.get(
    '/v1/subscriptions/books',
    {
      config: { scope: 'subscriptions:read' },
      schema: {
        tags: ['Subscriptions'],
        summary: 'Closed months and their restatements',
        description:
          'Months that were closed with `kontor books close`, and what changed in them since. Reports with `basis=as_closed` return the figures of a closed month as they were when it was closed.',
        querystring: Type.Object({ month: Type.Optional(month), page, page_size }),
        response: { 200: BooksView },
      },
    },
    async ({ caller, query }) =>
      inSnapshot(pool, db => booksView(db, caller.tenantId, { ...query, pageSize: query.page_size })),
  )
}
