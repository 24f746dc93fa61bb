import type pg from 'pg'
import { isUuid } from '../../domain/ids.ts'
import { CURRENCY_FORMAT, knownCurrency } from '../../domain/money.ts'
import { Type } from '../../domain/typebox.ts'
import { CONVERSION_COLUMNS } from '../../reports/export/tables.ts'
import { conversionSeries, exchangeSeries, selectCurrency } from '../../reports/series.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import { findConversion, listConversions } from '../../store/conversions/conversions.ts'
import type { TimePage } from '../../store/events/events.ts'
import { conversionText } from '../../store/export/row-texts.ts'
import type { App } from '../app.ts'
import { ConversionBody, ConversionSeriesBody } from '../events/schemas.ts'
import { sendJson, sendList, TimeList, TimeQuery, timeList } from '../paging.ts'
import { problems } from '../problems.ts'
import { findCurrency, REPORTING } from '../reports/query.ts'
import { asProblem } from '../reports/routes.ts'
import { amountsText, SeriesQuery, seriesRequest, seriesText } from '../series.ts'

export function conversionListRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/conversions',
    {
      config: { scope: 'conversions:read' },
      schema: {
        tags: ['Events'],
        summary: 'List conversions',
        description: 'Newest first. With `Accept: text/csv` the rows are returned as CSV.',
        querystring: TimeQuery,
        response: { 200: TimeList(ConversionBody) },
      },
    },
    async (request, reply) => {
      const { query, caller } = request
      const read = async (page: TimePage) => ({
        rows: await listConversions(pool, caller.tenantId, page),
        isCut: false,
      })
      return sendList(request, reply, timeList(query, read, conversionText), CONVERSION_COLUMNS)
    },
  )
}

export function conversionRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/conversions/:id',
    {
      config: { scope: 'conversions:read' },
      schema: {
        tags: ['Events'],
        summary: 'Get a conversion',
        description:
          'Finds a conversion by its Kontor id. 404: no conversion has this id, or Kontor combined it with another report of the same sale.',
        params: Type.Object({ id: Type.String({ description: 'The Kontor id of the conversion: a UUID' }) }),
        response: { 200: ConversionBody },
      },
    },
    async ({ params, caller }, reply) => {
      const id = params.id.toLowerCase()
      const found = isUuid(id) ? await findConversion(pool, caller.tenantId, id) : null
      if (!found) throw problems.unknown('conversion', params.id)
      return sendJson(reply, conversionText(found))
    },
  )
}

export function conversionSeriesRoute(app: App, { pool, now }: { pool: pg.Pool; now: () => Date }): void {
  app.get(
    '/v1/conversions/series',
    {
      config: { scope: 'conversions:read' },
      schema: {
        tags: ['Events'],
        summary: 'Count conversions over time',
        description:
          'Number and amounts of conversions per minute, hour or day, by the time they occurred, in the tenant’s time zone. Oldest bucket first, at most 1,500 buckets.',
        querystring: Type.Object({
          ...SeriesQuery.properties,
          currency: Type.Optional(
            Type.String({
              description:
                'Only amounts in this currency (ISO 4217). `reporting`: amounts of all currencies, converted to `reporting_currency` of the policy by the rates of each day',
              examples: ['EUR'],
            }),
          ),
        }),
        response: { 200: ConversionSeriesBody },
      },
    },
    async ({ query, caller }, reply) => {
      const policy = await appliedPolicy(pool, caller.tenantId)
      const { timeZone } = policy
      const currency = readCurrency(query.currency)
      const request = seriesRequest(query, { now: now(), timeZone })
      const series = await conversionSeries(pool, caller.tenantId, request)
      const target = currency === REPORTING ? findCurrency(currency, policy) : null
      const converted =
        series === null || currency === null
          ? series
          : target === null
            ? selectCurrency(series, currency)
            : await exchangeSeries(pool, caller.tenantId, series, { target, timeZone }).catch(asProblem)
      return sendJson(reply, seriesText(converted, request, amountsText))
    },
  )
}

/** Null: all currencies, each with its own amount. */
function readCurrency(given: string | undefined): string | null {
  if (given === undefined) return null
  const currency = given.toLowerCase() === REPORTING ? REPORTING : knownCurrency(given)
  if (currency !== null) return currency
  throw problems.invalid([{ pointer: '/currency', message: `must be ${CURRENCY_FORMAT}, or reporting` }])
}
