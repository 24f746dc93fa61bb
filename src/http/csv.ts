import type { FastifyReply, FastifyRequest } from 'fastify'
import { isObject } from '../domain/json/json.ts'
import { csvLine, csvText } from '../reports/export/export.ts'

export function wantsCsv(request: FastifyRequest): boolean {
  return /\btext\/csv\b/i.test(request.headers.accept ?? '')
}

/** An onSend hook for lists that are small and made at once: with `Accept: text/csv` their rows go out as CSV. */
export async function listsAsCsv(
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  if (!wantsCsv(request) || reply.statusCode !== 200 || typeof payload !== 'string') return payload
  const body: unknown = JSON.parse(payload)
  const rows = isObject(body) ? body.results : body
  if (!Array.isArray(rows) || !rows.every(isObject)) return payload
  reply.header('content-type', 'text/csv; charset=utf-8')
  if (isObject(body) && typeof body.next_cursor === 'string') reply.header('x-next-cursor', body.next_cursor)
  const names = [...new Set(rows.flatMap(row => Object.keys(row)))]
  const lines = rows.map(row => csvLine(names.map(name => cellText(row[name]))))
  return [csvLine(names), ...lines].join('')
}

function cellText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : csvText(value as string | number | boolean)
}
