import { Type } from 'typebox'
import { isUuid } from '../../domain/ids.ts'
import { parseTimestamp } from '../../domain/time.ts'
import { decodeCursor, encodeCursor } from '../cursor.ts'

const MAX_LIMIT = 100

/** The query parameters of every list that goes on for long. */
export const paging = {
  limit: Type.Integer({ minimum: 1, default: 50, description: 'More than 100 is served as 100' }),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the page before' })),
}

export const byTenant = {
  tenant: Type.Optional(Type.String({ description: 'Id or name; default: all of them' })),
}
export const bySource = { source: Type.Optional(Type.String({ description: 'Id of a source: src_…' })) }

export function pageOf<Row>(rows: Row[], limit: number, cursorOf: (last: Row) => string[]) {
  const results = rows.slice(0, limit)
  const last = results.at(-1)
  return { results, next_cursor: rows.length > limit && last ? encodeCursor(cursorOf(last)) : null }
}

export function limitOf({ limit }: { limit: number }): number {
  return Math.min(limit, MAX_LIMIT)
}

/** A place in a list that is ordered by a time and an id. */
export function placeOf(cursor: string | undefined): { at: Date; id: string } | undefined {
  if (cursor === undefined) return undefined
  const [time, id] = decodeCursor(cursor, 2) as [string, string]
  const at = parseTimestamp(time)
  if (!at || !isUuid(id)) decodeCursor('', 2)
  return { at: at!, id }
}
