import type pg from 'pg'
import { Type } from 'typebox'
import { storableText } from '../domain/json/json.ts'
import { ENTITY_TYPES } from '../domain/records/records.ts'
import { NullableText } from '../domain/shapes.ts'
import type { Scope } from '../domain/tenants/keys.ts'
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
        summary: 'Find records and events by id, and people by name',
        description:
          'Products, contacts, orders and events by their exact ids (events also by the id of their sender), people by the beginning of an e-mail, an id, a name or a last name. What the key may not read is left out; nothing found is an empty list.',
        querystring: Type.Object({
          q: Type.String({ minLength: 2, maxLength: 255 }),
          limit: Type.Integer({ minimum: 1, maximum: 50, default: 20 }),
        }),
        response: {
          200: Type.Object({
            results: Type.Array(
              Type.Object({
                kind: Type.Enum([...ENTITY_TYPES, 'event', 'person']),
                id: Type.String({ description: 'Of a person the profile id' }),
                title: Type.String(),
                note: NullableText,
              }),
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
