import type pg from 'pg'
import { Nullable } from '../domain/shapes.ts'
import { SCOPES } from '../domain/tenants/keys.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { Type } from '../domain/typebox.ts'
import { appliedPolicy } from '../store/billing/policies.ts'
import { usedCurrencies } from '../store/reports/currencies.ts'
import type { App } from './app.ts'

/** What a client needs to know before it asks for a report. */
const TenantBody = Type.Object(
  {
    id: Type.String(),
    time_zone: Type.String({ description: 'IANA time zone of days, weeks and months in reports' }),
    currencies: Type.Array(Type.String(), {
      description: 'Currencies of subscriptions and recent sales. The one with the most paying accounts is first',
    }),
    reporting_currency: Nullable(
      Type.String({ description: 'The currency of reports with `currency=reporting`; null: not set' }),
    ),
  },
  {
    title: 'TenantFacts',
    description: 'The settings of the tenant that reports depend on',
    examples: [{ id: 'ten_1', time_zone: 'Europe/Berlin', currencies: ['EUR', 'USD'], reporting_currency: 'EUR' }],
  },
)

export function tenantRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/tenant',
    {
      config: { scope: SCOPES },
      schema: {
        tags: ['Records'],
        summary: 'Get the tenant of the key',
        description:
          'Returns the time zone of the reports, the currencies that the tenant uses, and the reporting currency. A key with any scope can call this route.',
        response: { 200: TenantBody },
      },
    },
    async ({ caller }) => {
      const { tenantId } = caller
      const [policy, currencies] = await Promise.all([appliedPolicy(pool, tenantId), usedCurrencies(pool, tenantId)])
      const { timeZone, reportingCurrency } = policy
      return {
        ...{ id: publicTenantId(tenantId), time_zone: timeZone, currencies },
        reporting_currency: reportingCurrency,
      }
    },
  )
}
