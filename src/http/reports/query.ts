import type { FastifyRequest } from 'fastify'
import { type Filter, isDimension } from '../../domain/billing/dimensions.ts'
import { normalizeCountry } from '../../domain/billing/fields.ts'
import type { Policy } from '../../domain/billing/policy.ts'
import type { Slice } from '../../domain/list-slices.ts'
import { CURRENCY_FORMAT, knownCurrency } from '../../domain/money.ts'
import { endIn, momentBefore, momentIn, WHOLE_DAY } from '../../domain/time-zone.ts'
import { type TSchema, Type } from '../../domain/typebox.ts'
import type { ValidationError } from '../../domain/validation-error.ts'
import type { Window } from '../../reports/movements.ts'
import type { ReportQuestion } from '../../reports/question.ts'
import { requireOrder } from '../paging.ts'
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
export function querySchema(
  pages: Record<string, string>,
  own: Record<string, TSchema> = {},
  { unfiltered = false, reporting = false }: { unfiltered?: boolean; reporting?: boolean } = {},
) {
  const all = reporting ? ' `reporting`: all currencies, converted to `reporting_currency` of the policy.' : ''
  return Type.Object({
    currency: Type.String({
      description: `The currency of the report: an ISO 4217 code in upper or lower case.${all}`,
      examples: ['EUR'],
    }),
    ...own,
    ...(!unfiltered && filterSchema(own)),
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

/** For reports whose figures a closed month keeps. */
export const BasisQuery = {
  basis: Type.Enum(['restated', 'as_closed'], {
    default: 'restated',
    description:
      'restated: everything that is known now; as_closed: if the report ends in a closed month, what was known when the month was closed',
  }),
}

/** The filters of a report. If `interval` is the bucket length, the filter is called `billing_interval`. */
function filterSchema(own: Record<string, TSchema>) {
  const only = (description: string) => Type.Optional(Type.String({ minLength: 1, description }))
  return {
    plan: only('Only items of this plan, as named in the breakdown'),
    plan_group: only('Only items of plans in this group of the policy'),
    ...('interval' in own ? { billing_interval: only(ONLY_INTERVAL) } : { interval: only(ONLY_INTERVAL) }),
    source: only('Only accounts with this acquisition source'),
    channel: only('Only accounts with this channel'),
    country: only('Only accounts of this country, as named in the breakdown'),
    status: only('Only subscriptions with this status'),
  }
}

/** A filter by metadata: metadata.KEY=VALUE. */
function isMetadata(name: string): boolean {
  return name.startsWith('metadata.') && isDimension(name)
}

/** Rejects filters in a report that has none: other unknown parameters are ignored. */
export function filterErrors(query: ReportQuery): ValidationError[] {
  return Object.keys(filterSchema({}))
    .concat(Object.keys(query).filter(isMetadata))
    .filter(name => query[name] !== undefined)
    .map(name => ({ pointer: `/${name}`, message: 'is not available in this report' }))
}

const ONLY_INTERVAL = 'Only items with this billing interval, as named in the breakdown'

export function readFilter(query: ReportQuery, own: Record<string, TSchema> = {}): Filter {
  const given = {
    plan: query.plan,
    plan_group: query.plan_group,
    channel: query.channel,
    ...Object.fromEntries(Object.entries(query).filter(([name]) => isMetadata(name))),
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

/** Stands for the reporting currency of the policy. */
export const REPORTING = 'reporting'

/** Returns the currency. Reports all validation errors together; `more`: those that the schema cannot find. */
export function readCurrency(request: FastifyRequest, more: ValidationError[] = [], allowsReporting = false): string {
  const { currency: given } = request.query as { currency?: unknown }
  const isReporting = allowsReporting && typeof given === 'string' && given.toLowerCase() === REPORTING
  const currency = isReporting ? REPORTING : knownCurrency(given)
  const errors = [...readValidationErrors(request.validationError), ...more]
  if (currency === null && !errors.some(({ pointer }) => pointer === '/currency')) {
    errors.push({ pointer: '/currency', message: `must be ${CURRENCY_FORMAT}` })
  }
  if (errors.length > 0) throw problems.invalid(errors)
  return currency!
}

/** The currency of the report. */
export function findCurrency(currency: string, { reportingCurrency }: Policy): string {
  if (currency !== REPORTING) return currency
  if (reportingCurrency !== null) return reportingCurrency
  const message =
    'cannot be "reporting", because the tenant has no reporting currency. Use a currency code, or set a reporting currency with `kontor policy set --tenant T reporting_currency=EUR`'
  throw problems.invalid([{ pointer: '/currency', message }])
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
  requireOrder(momentIn(policy.timeZone, since), endIn(policy.timeZone, until))
  const last = earlier(endIn(policy.timeZone, until) ?? asOf, asOf)
  return { since: earlier(momentBefore(policy.timeZone, since) ?? BEGINNING, last), until: last }
}

const earlier = (a: Date, b: Date) => new Date(Math.min(a.getTime(), b.getTime()))
