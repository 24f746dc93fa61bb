import type pg from 'pg'
import { DeadLetterView, deadLetterView } from '../../admin/dead-letters.ts'
import { DEAD_LETTER_REASONS } from '../../domain/entries/entry.ts'
import { storableText } from '../../domain/json/json.ts'
import { Type } from '../../domain/typebox.ts'
import { listDeadLetters } from '../../store/entries/dead-letters.ts'
import type { App } from '../app.ts'
import { decodeTimeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'

export function deadLetterListRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/dead-letters',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'List dead letters',
        description:
          'Items and entries of the tenant that were rejected or failed every attempt and are not closed, with the error, newest first. The admin API shows their bodies and replays them.',
        querystring: Type.Object({
          reason: Type.Optional(
            Type.Enum([...DEAD_LETTER_REASONS], { description: 'rejected: invalid; failed: could not be applied' }),
          ),
          source_config_id: Type.Optional(Type.String({ description: 'Only those of this source' })),
          ...pageParameters,
        }),
        response: { 200: PagedList(DeadLetterView) },
      },
    },
    async ({ query, caller }) => {
      const after = decodeTimeCursor(query.cursor)
      const { reason, source_config_id: source } = query
      const page = await readPage(
        query,
        limit =>
          listDeadLetters(pool, {
            tenantId: caller.tenantId,
            reason,
            sourceId: source === undefined ? undefined : storableText(source),
            limit,
            ...(after && { before: { failedAt: after.at, id: after.id } }),
          }),
        ({ failedAt, id }) => [failedAt.toISOString(), id],
      )
      return pageBody({ ...page, rows: page.rows.map(deadLetterView) })
    },
  )
}
