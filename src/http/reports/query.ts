import type { FastifyRequest } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { Filter } from '../../domain/billing/dimensions.ts'
import { normalizeCountry } from '../../domain/billing/fields.ts'
import type { Slice } from '../../domain/list-slices.ts'
import { knownCurrency } from '../../domain/money.ts'
import { endIn, momentBefore, WHOLE_DAY } from '../../domain/time-zone.ts'
import type { ValidationError } from '../../domain/validation-error.ts'
import type { Window } from '../../reports/movements.ts'
import type { ReportQuestion } from '../../reports/question.ts'
import { problems } from '../problems.ts'
import { readValidationErrors } from '../validation.ts'

const MAX_PAGE_SIZE = 100

export type ReportQuery = Record<string, string | number | undefined> & {
  currency: string
  page_size: number
  as_of?: string
  list?: string
}

/** The query parameters of a report. `pages`: by list, the parameter with its page number; empty: the report has no pages. */
export function querySchema(pages: Record<string, string>, own: Record<string, TSchema> = {}) {
  return Type.Object({
    currency: Type.String({ description: 'ISO 4217, any case. Totals stay in this currency.', examples: ['EUR'] }),
    ...own,
    ...filterSchema(own),
    as_of: Type.Optional(
      Type.String({
        format: 'timestamp',
        description:
          'The time of the report; default now. A date is the start of that day in the time zone of the policy',
      }),
    ),
    ...(Object.keys(pages).length > 0 && pagingSchema(pages)),
  })
}

/** The filters of a report. If `interval` is the bucket length, the filter is called `billing_interval`. */
function filterSchema(own: Record<string, TSchema>) {
  const only = (description: string) => Type.Optional(Type.String({ minLength: 1, description }))
  return {
    plan: only('Only items of this plan, as named in the breakdown'),
    ...('interval' in own ? { billing_interval: only(ONLY_INTERVAL) } : { interval: only(ONLY_INTERVAL) }),
    source: only('Only accounts with this acquisition source'),
    country: only('Only accounts of this country, as named in the breakdown'),
    status: only('Only subscriptions with this status'),
  }
}

const ONLY_INTERVAL = 'Only items with this billing interval, as named in the breakdown'

export function readFilter(query: ReportQuery, own: Record<string, TSchema> = {}): Filter {
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
      description: `Rows per page; larger values are reduced to ${MAX_PAGE_SIZE}`,
    }),
    ...Object.fromEntries(
      Object.entries(pages).map(([list, parameter]) => [
        parameter,
        Type.Integer({ minimum: 1, default: 1, description: `Page of ${list}` }),
      ]),
    ),
    list: Type.Optional(
      Type.Enum(Object.keys(pages), {
        description: `With Accept: text/csv, the list to export: all of it, or one page if a page is given; default ${Object.keys(pages)[0]}`,
      }),
    ),
  }
}

/** Returns the currency. Reports all validation errors together; `more`: those that the schema cannot find. */
export function readCurrency(request: FastifyRequest, more: ValidationError[] = []): string {
  const query = request.query as Partial<ReportQuery>
  const currency = knownCurrency(query.currency)
  const errors = [...readValidationErrors(request.validationError), ...more]
  if (currency === null && !errors.some(({ pointer }) => pointer === '/currency')) {
    errors.push({ pointer: '/currency', message: 'must be a currency code, for example EUR' })
  }
  if (errors.length > 0) throw problems.invalid(errors)
  return currency!
}

type Page = { page: number; pageSize: number }

export function readPage(query: ReportQuery, parameter: string): Page {
  return { page: Number(query[parameter]), pageSize: Math.min(query.page_size, MAX_PAGE_SIZE) }
}

/** A page after the end is empty. */
export function toSlice({ page, pageSize }: Page, count: number): Slice {
  return { offset: Math.min((page - 1) * pageSize, count), limit: pageSize }
}

const BEGINNING = new Date('0001-01-01T00:00:00Z')

/** `what`: the kind of rows that the window selects. */
export const WindowQuery = (what: string) => ({
  since: Type.Optional(
    Type.String({ format: 'timestamp', description: `${what} after this; default: all. ${WHOLE_DAY}` }),
  ),
  until: Type.Optional(
    Type.String({
      format: 'timestamp',
      description: `Up to and including this, as_of at the latest; default: as_of. ${WHOLE_DAY}`,
    }),
  ),
})

export function readWindow({ asOf, policy }: ReportQuestion, { since, until }: ReportQuery): Window {
  const last = earlier(endIn(policy.timeZone, until) ?? asOf, asOf)
  return { since: earlier(momentBefore(policy.timeZone, since) ?? BEGINNING, last), until: last }
}

const earlier = (a: Date, b: Date) => new Date(Math.min(a.getTime(), b.getTime()))
