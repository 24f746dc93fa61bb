import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import type { TObject, TSchema } from 'typebox'
import { describePolicy } from '../../domain/billing/policy.ts'
import type { Slice } from '../../domain/list-slices.ts'
import { momentIn } from '../../domain/time-zone.ts'
import type { ValidationError } from '../../domain/validation-error.ts'
import type { Db } from '../../postgres/database.ts'
import { csvLine } from '../../reports/export/export.ts'
import { inSnapshot, type ReportList, type ReportQuestion } from '../../reports/question.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import type { App } from '../app.ts'
import { wantsCsv } from '../paging.ts'
import { jsonRow, type Row, textRow } from './fields.ts'
import { querySchema, type ReportQuery, readCurrency, readFilter, readPage, toSlice } from './query.ts'

/** One list of a report, with the schema of its rows. */
type ShownList = ReportList<object> & { row: TObject }

export function shown<Schema extends TObject>(row: Schema, list: ReportList<Row<Schema>>): ShownList {
  return { row, ...list }
}

/** A report in the form of the response. */
export type ShownReport = {
  /** Fields other than currency, as_of, policy and the lists. */
  facts: Record<string, unknown>
  lists: Record<string, ShownList>
}

export type ReportDeps = { pool: pg.Pool; now: () => Date }

type ReportRoute = {
  path: string
  summary: string
  description: string
  /** By list, the parameter with its page number. CSV exports the first list by default. */
  pages: Record<string, string>
  /** Additional query parameters. */
  own?: Record<string, TSchema>
  body: TSchema
  problems?: number[]
  /** The list that is paged at the top level of the body. */
  flat?: string
  /** The list that is returned completely, as `results`. */
  whole?: string
  errors?(query: ReportQuery): ValidationError[]
  build(db: Db, question: ReportQuestion, query: ReportQuery): Promise<ShownReport>
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
      const currency = readCurrency(request, route.errors?.(query))
      const { tenantId } = request.caller
      const askedAt = now()
      const list = wantsCsv(request) ? (query.list ?? route.whole ?? Object.keys(route.pages)[0]!) : null
      const answer = await inSnapshot(pool, async db => {
        const policy = await appliedPolicy(db, tenantId)
        const asOf = momentIn(policy.timeZone, query.as_of) ?? askedAt
        const question = {
          tenantId,
          currency,
          asOf,
          now: askedAt,
          policy,
          filter: readFilter(query, route.own),
        }
        const report = await route.build(db, question, query)
        if (list === null) return jsonBody(question, route, query, report)
        return csvText(question, report.lists[list]!, requestedSlice(request, route, query, list))
      })
      if (list !== null) {
        reply.header('content-type', 'text/csv; charset=utf-8')
        reply.header('content-disposition', `attachment; filename="${list}-${currency}.csv"`)
      }
      return reply.send(answer)
    },
  )
}

async function jsonBody(
  { currency, asOf, policy }: ReportQuestion,
  route: ReportRoute,
  query: ReportQuery,
  { facts, lists }: ShownReport,
) {
  const body: Record<string, unknown> = {
    currency,
    as_of: asOf.toISOString(),
    ...facts,
    policy: describePolicy(policy),
  }
  for (const [name, list] of Object.entries(lists)) {
    if (name === route.whole) {
      const rows = await list.rows({ offset: 0, limit: list.count })
      body.results = rows.map(row => jsonRow(list.row, row, currency))
      continue
    }
    const page = readPage(query, route.pages[name]!)
    const rows = await list.rows(toSlice(page, list.count))
    const shownPage = {
      results: rows.map(row => jsonRow(list.row, row, currency)),
      page: page.page,
      page_size: page.pageSize,
      count: list.count,
      pages: Math.ceil(list.count / page.pageSize),
    }
    if (name === route.flat) Object.assign(body, shownPage)
    else body[name] = shownPage
  }
  return body
}

/** Null: the complete list, because no page was requested. */
function requestedSlice(
  request: FastifyRequest,
  route: ReportRoute,
  query: ReportQuery,
  list: string,
): ((count: number) => Slice) | null {
  const given = new URLSearchParams(request.url.split('?')[1])
  const parameter = route.pages[list]
  if (parameter === undefined) return null
  if (!given.has(parameter) && !given.has('page_size')) return null
  return count => toSlice(readPage(query, parameter), count)
}

async function csvText(
  { currency }: ReportQuestion,
  list: ShownList,
  requested: ((count: number) => Slice) | null,
): Promise<string> {
  const { offset, limit } = requested?.(list.count) ?? { offset: 0, limit: list.count }
  const lines = [csvLine(Object.keys(list.row.properties))]
  for (let done = 0; done < limit; done += ROWS_AT_A_TIME) {
    const part = { offset: offset + done, limit: Math.min(ROWS_AT_A_TIME, limit - done) }
    for (const row of await list.rows(part)) {
      lines.push(csvLine(Object.values(textRow(list.row, row, currency))))
    }
  }
  return lines.join('')
}
