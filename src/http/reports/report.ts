import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { TObject, TSchema } from 'typebox'
import { POLICY } from '../../domain/billing/policy.ts'
import type { Fault } from '../../domain/fault.ts'
import type { Db } from '../../postgres/database.ts'
import { resolveAttribution } from '../../store/billing/attribution.ts'
import { consistently, type Slice } from '../../store/reports/reports.ts'
import type { App } from '../app.ts'
import { type Ask, pageOf, querySchema, type ReportQuery, readAsk, sliceOf } from './query.ts'
import { jsonRow, textRow } from './rows.ts'

/** One list of a report. Rows hold amounts in minor units; its schema says which. */
export type ReportList = { row: TObject; count: number; rows(slice: Slice): Promise<object[]> }

export type Report = {
  /** Beside currency, as_of, policy and the lists. */
  facts: Record<string, unknown>
  lists: Record<string, ReportList>
}

export type ReportDeps = { pool: pg.Pool; now: () => Date }

export type ReportRoute = {
  path: string
  summary: string
  description: string
  /** By list, the parameter that turns its pages; the first is what CSV exports by default. */
  pages: Record<string, string>
  /** Query parameters of its own. */
  own?: Record<string, TSchema>
  body: TSchema
  problems?: number[]
  /** The list whose page is the answer itself. */
  flat?: string
  faults?(query: ReportQuery): Fault[]
  build(db: Db, ask: Ask, query: ReportQuery): Promise<Report>
}

const ROWS_AT_A_TIME = 1_000

export function reportRoute(app: App, { pool, now }: ReportDeps, route: ReportRoute): void {
  app.get(
    route.path,
    {
      attachValidation: true,
      config: {
        scope: 'subscriptions:read',
        ...(route.problems && { problems: route.problems }),
      },
      schema: {
        tags: ['Subscriptions'],
        summary: route.summary,
        description: route.description,
        querystring: querySchema(route.pages, route.own),
        response: { 200: route.body },
      },
    },
    async (request, reply) => {
      const query = request.query as unknown as ReportQuery
      const ask = readAsk(request, now(), route.faults?.(query))
      await resolveAttribution(pool, ask.tenantId)
      const list = wantsCsv(request) ? (query.list ?? Object.keys(route.pages)[0]!) : null
      const answer = await consistently(pool, async db => {
        const report = await route.build(db, ask, query)
        if (list === null) return jsonBody(ask, route, query, report)
        return csvText(ask, report.lists[list]!, requestedSlice(request, route, query, list))
      })
      if (list !== null) {
        reply.header('content-type', 'text/csv; charset=utf-8')
        reply.header('content-disposition', `attachment; filename="${list}-${ask.currency}.csv"`)
      }
      return reply.send(answer)
    },
  )
}

function wantsCsv(request: FastifyRequest): boolean {
  return /\btext\/csv\b/i.test(request.headers.accept ?? '')
}

async function jsonBody(ask: Ask, route: ReportRoute, query: ReportQuery, { facts, lists }: Report) {
  const body: Record<string, unknown> = {
    currency: ask.currency,
    as_of: ask.asOf.toISOString(),
    ...facts,
    policy: POLICY,
  }
  for (const [name, list] of Object.entries(lists)) {
    const page = pageOf(query, route.pages[name]!)
    const rows = await list.rows(sliceOf(page, list.count))
    const shown = {
      results: rows.map(row => jsonRow(list.row, row, ask.currency)),
      page: page.page,
      page_size: page.pageSize,
      count: list.count,
      pages: Math.ceil(list.count / page.pageSize),
    }
    if (name === route.flat) Object.assign(body, shown)
    else body[name] = shown
  }
  return body
}

/** An export is whole, unless a page of it is asked for. */
function requestedSlice(
  request: FastifyRequest,
  route: ReportRoute,
  query: ReportQuery,
  list: string,
): ((count: number) => Slice) | null {
  const given = new URLSearchParams(request.url.split('?')[1])
  const parameter = route.pages[list]!
  if (!given.has(parameter) && !given.has('page_size')) return null
  return count => sliceOf(pageOf(query, parameter), count)
}

async function csvText(
  ask: Ask,
  list: ReportList,
  requested: ((count: number) => Slice) | null,
): Promise<string> {
  const { offset, limit } = requested?.(list.count) ?? { offset: 0, limit: list.count }
  const lines = [csvLine(Object.keys(list.row.properties))]
  for (let done = 0; done < limit; done += ROWS_AT_A_TIME) {
    const part = { offset: offset + done, limit: Math.min(ROWS_AT_A_TIME, limit - done) }
    for (const row of await list.rows(part)) {
      lines.push(csvLine(Object.values(textRow(list.row, row, ask.currency))))
    }
  }
  return lines.join('')
}

function csvLine(cells: string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

/** What a spreadsheet would take for a formula gets an apostrophe: names come from strangers. */
function csvCell(text: string): string {
  const isFormula = /^[=+@\t\r]|^-(?![\d.]+$)/.test(text)
  const safe = isFormula ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** A list that is all there already. */
export function listOf(row: TObject, rows: object[]): ReportList {
  return { row, count: rows.length, rows: async ({ offset, limit }) => rows.slice(offset, offset + limit) }
}
