import type pg from 'pg'
import { storableText } from '../domain/json/json.ts'
import { ENTITY_TYPES } from '../domain/records/records.ts'
import { NullableText } from '../domain/shapes.ts'
import type { Scope } from '../domain/tenants/keys.ts'
import { Type } from '../domain/typebox.ts'
import type { Log } from '../log/log.ts'
import { search } from '../reports/search.ts'
import type { App } from './app.ts'

const SCOPES = ['products:read', 'contacts:read', 'orders:read', 'events:read'] as const

export function searchRoute(app: App, deps: { pool: pg.Pool; log: Log }): void {
  app.get(
    '/v1/search',
    {
      config: { scope: SCOPES },
      schema: {
        tags: ['Records'],
        summary: 'Search',
        description:
          'Finds products, contacts, orders and events by exact id (events also by their sender’s id), and people by the beginning of an e-mail address, id, name or last name. Results that the key may not read are omitted.',
        querystring: Type.Object({
          q: Type.String({ minLength: 2, maxLength: 255, description: 'An id, or the beginning of a name or address' }),
          limit: Type.Integer({ minimum: 1, maximum: 50, default: 20, description: 'Maximum number of results' }),
        }),
        response: {
          200: Type.Object({
            results: Type.Array(
              Type.Object(
                {
                  kind: Type.Enum([...ENTITY_TYPES, 'event', 'person']),
                  id: Type.String({ description: 'For a person: the profile id' }),
                  title: Type.String(),
                  note: NullableText,
                },
                { title: 'SearchResult', description: 'A record, an event or a person' },
              ),
            ),
            next_cursor: Type.Null(),
          }),
        },
      },
    },
    async ({ query, caller }) => {
      const scopes: readonly Scope[] = caller.key.scopes
      const results = await search(deps, caller.tenantId, {
        text: storableText(query.q.trim()),
        limit: query.limit,
        may: what => scopes.includes(`${what}s:read`),
      })
      return { results, next_cursor: null }
    },
  )
}
