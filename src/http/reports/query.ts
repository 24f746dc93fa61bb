import type { FastifyRequest } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { Filter } from '../../domain/billing/dimensions.ts'
import { normalizeCountry } from '../../domain/billing/fields.ts'
import type { Slice } from '../../domain/list-slices.ts'
import { knownCurrency } from '../../domain/money.ts'
import { momentIn } from '../../domain/time-zone.ts'
import type { ValidationError } from '../../domain/validation-error.ts'
import type { Window } from '../../reports/movements.ts'
import type { ReportQuestion } from '../../reports/question.ts'
import { problems } from '../problems.ts'
import { validationFaults } from '../validation.ts'

const MAX_PAGE_SIZE = 100

export type ReportQuery = Record<string, string | number | undefined> & {
  currency: string
  page_size: number
  as_of?: string
  list?: string
}

/** The query parameters of a report; `pages`: by list, the parameter that turns its pages; none where all is answered. */
export function querySchema(pages: Record<string, string>, own: Record<string, TSchema> = {}) {
  return Type.Object({
    currency: Type.String({
      description: 'ISO 4217, any case. Totals stay in this currency.',
      examples: ['EUR'],
    }),
    ...own,
    ...filterSchema(own),
    as_of: Type.Optional(
      Type.String({
        format: 'timestamp',
        description:
          'The report as it stood then; default now. A bare date is the beginning of that day in the time zone of the policy',
      }),
    ),
    ...(Object.keys(pages).length > 0 && pagingSchema(pages)),
  })
}

/** What narrows a report. Where `interval` is that of its buckets, the one of prices has another name. */
function filterSchema(own: Record<string, TSchema>) {
  const only = (description: string) => Type.Optional(Type.String({ minLength: 1, description }))
  return {
    plan: only('Only items of this plan, as the breakdown names it'),
    ...('interval' in own ? { billing_interval: only(ONLY_INTERVAL) } : { interval: only(ONLY_INTERVAL) }),
    source: only('Only accounts that came from there'),
    country: only('Only accounts of this country, as the breakdown names it'),
    status: only('Only subscriptions of this status'),
  }
}

const ONLY_INTERVAL = 'Only items that are billed in this interval, as the breakdown names it'

export function filterOf(query: ReportQuery, own: Record<string, TSchema> = {}): Filter {
  const given = {
    plan: query.plan,
    interval: 'interval' in own ? query.billing_interval : query.interval,
    source: query.source,
    country: normalizeCountry(query.country as string | undefined),
    status: query.status,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value != null)) as Filter
}

function pagingSchema(pages: Record<string, string>) {
  return {
    page_size: Type.Integer({
      minimum: 1,
      default: 50,
      description: `Rows of each list; more than ${MAX_PAGE_SIZE} is served as ${MAX_PAGE_SIZE}`,
    }),
    ...Object.fromEntries(
      Object.entries(pages).map(([list, parameter]) => [
        parameter,
        Type.Integer({ minimum: 1, default: 1, description: `Page of ${list}` }),
      ]),
    ),
    list: Type.Optional(
      Type.Enum(Object.keys(pages), {
        description: `With Accept: text/csv: which list to export, whole unless a page is asked for; default ${Object.keys(pages)[0]}`,
      }),
    ),
  }
}

/** Returns the currency. All faults of the query at once; `more` are those that no schema can tell. */
export function readCurrency(request: FastifyRequest, more: ValidationError[] = []): string {
  const query = request.query as Partial<ReportQuery>
  const currency = knownCurrency(query.currency)
  const faults = [...validationFaults(request.validationError), ...more]
  if (currency === null && !faults.some(({ pointer }) => pointer === '/currency')) {
    faults.push({ pointer: '/currency', message: 'must be the code of a currency, for example EUR' })
  }
  if (faults.length > 0) throw problems.invalid(faults)
  return currency!
}

type Page = { page: number; pageSize: number }

export function pageOf(query: ReportQuery, parameter: string): Page {
  return { page: Number(query[parameter]), pageSize: Math.min(query.page_size, MAX_PAGE_SIZE) }
}

/** Nothing lies beyond the end, however large the number. */
export function sliceOf({ page, pageSize }: Page, count: number): Slice {
  return { offset: Math.min((page - 1) * pageSize, count), limit: pageSize }
}

const BEGINNING = new Date('0001-01-01T00:00:00Z')

/** `what`: of which those in the window are listed. */
export const WindowQuery = (what: string) => ({
  since: Type.Optional(Type.String({ format: 'timestamp', description: `${what} after this; default: all` })),
  until: Type.Optional(
    Type.String({
      format: 'timestamp',
      description: 'Up to and including this, as_of at the latest; default: as_of',
    }),
  ),
})

export function windowOf({ asOf, policy }: ReportQuestion, { since, until }: ReportQuery): Window {
  const moment = (text: unknown) => momentIn(policy.timeZone, text)
  const to = moment(until) ?? asOf
  const last = earlier(to, asOf)
  return { since: earlier(moment(since) ?? BEGINNING, last), until: last }
}

const earlier = (a: Date, b: Date) => new Date(Math.min(a.getTime(), b.getTime()))
