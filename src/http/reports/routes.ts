import { Type } from 'typebox'
import type { Fault } from '../../domain/fault.ts'
import { toMajor } from '../../domain/money.ts'
import { parseTimestamp } from '../../domain/time.ts'
import { movedBetween, sourceFigures } from '../../store/reports/totals.ts'
import type { App } from '../app.ts'
import { accountReport } from './account.ts'
import { attentionReport } from './attention.ts'
import { readCoverage, sum } from './coverage.ts'
import { movementReport, retentionReport } from './movements.ts'
import { overviewReport } from './overview.ts'
import { type Ask, daysFrom, type ReportQuery } from './query.ts'
import { type ReportDeps, reportRoute } from './report.ts'
import {
  AccountBody,
  AcquisitionBody,
  AttentionBody,
  MovementsBody,
  OverviewBody,
  RetentionBody,
} from './schemas.ts'
import { sourceList } from './sources.ts'

const CSV = 'With `Accept: text/csv` one of the lists is exported instead.'
const Window = (description: string) => Type.Integer({ enum: [30, 60, 90], default: 30, description })
const MAX_MONTHS = 60
const BEGINNING = new Date('0001-01-01T00:00:00Z')

/** The four reports, and two more. */
export function subscriptionRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/overview',
    summary: 'Subscription overview',
    description: `MRR and everything that explains it. ${CSV}`,
    pages: { accounts: 'page', acquisition_sources: 'acquisition_page', exclusions: 'exclusion_page' },
    body: OverviewBody,
    build: overviewReport,
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/attention',
    summary: 'Payment issues, renewals, scheduled cancellations, upcoming billing',
    description: `Open payment issues are listed whatever the window. ${CSV}`,
    pages: {
      payment_issues: 'issue_page',
      renewals: 'renewal_page',
      cancellations: 'cancel_page',
      upcoming_billing: 'billing_page',
    },
    own: { days: Window('How far to look ahead') },
    body: AttentionBody,
    build: (db, ask, query) => attentionReport(db, ask, Number(query.days)),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/acquisition',
    summary: 'Current MRR by acquisition source, and what was retained',
    description: `Every account has one source, or is \`unattributed\`: the rows add up to MRR. ${CSV}`,
    pages: { sources: 'page' },
    own: { horizon: Window('Days back to the cohort that is looked at') },
    body: AcquisitionBody,
    async build(db, ask, query) {
      const horizon = Number(query.horizon)
      const then = daysFrom(ask.asOf, -horizon)
      const figures = await sourceFigures(db, ask.tenantId, ask.asOf, then)
      const coverage = await readCoverage(db, ask, figures, then)
      const own = figures.filter(one => one.currency === ask.currency)
      const mrr = toMajor(
        sum(own, one => one.mrr),
        ask.currency,
      )
      const { kept } = await movedBetween(db, ask.tenantId, ask.currency, then, ask.asOf)
      return {
        facts: { horizon, mrr, coverage: coverage.shown },
        lists: { sources: await sourceList(db, ask, figures, kept, coverage.isThenCovered) },
      }
    },
  })
  accountRoute(app, deps)
  movementRoutes(app, deps)
}

function accountRoute(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/account',
    summary: 'One account: summary, items, timeline',
    description: `By \`customer\` or by \`subscription_id\`; given both, they must belong together. ${CSV}`,
    pages: { items: 'page', timeline: 'timeline_page' },
    own: {
      customer: Type.Optional(Type.String({ minLength: 1, description: 'As account rows name it' })),
      subscription_id: Type.Optional(Type.String({ minLength: 1 })),
    },
    body: AccountBody,
    problems: [404],
    faults: ({ customer, subscription_id }) =>
      customer === undefined && subscription_id === undefined
        ? [{ pointer: '/customer', message: 'or subscription_id is required' }]
        : [],
    build: (db, ask, query) =>
      accountReport(db, ask, {
        customer: (query.customer as string | undefined) ?? null,
        subscriptionId: (query.subscription_id as string | undefined) ?? null,
      }),
  })
}

function movementRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/movements',
    summary: 'Every movement of MRR, the oldest first',
    description:
      'After `since` and up to `until`, at their effective instants: opening + new + expansion + reactivation − contraction − churn = closing. With `Accept: text/csv` all of them are exported.',
    pages: { movements: 'page' },
    own: {
      since: Type.Optional(
        Type.String({ format: 'timestamp', description: 'Movements after this; default: all' }),
      ),
      until: Type.Optional(
        Type.String({ format: 'timestamp', description: 'Up to and including this; default: as_of' }),
      ),
    },
    body: MovementsBody,
    faults: windowFaults,
    flat: 'movements',
    build: (db, ask, query) => movementReport(db, ask, windowOf(ask, query)),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/retention',
    summary: 'Monthly cohorts: gross and net revenue retention, logo retention',
    description: `A cohort is the accounts that first paid in a month; a row is how it stood at the end of a month after. ${CSV}`,
    pages: { cohorts: 'page' },
    own: {
      months: Type.Integer({
        minimum: 1,
        maximum: MAX_MONTHS,
        default: 12,
        description: 'Cohorts of so many months, the current one included',
      }),
    },
    body: RetentionBody,
    build: (db, ask, query) => retentionReport(db, ask, Number(query.months)),
  })
}

function windowFaults({ since, until }: ReportQuery): Fault[] {
  const [from, to] = [parseTimestamp(since), parseTimestamp(until)]
  return from && to && from > to ? [{ pointer: '/since', message: 'must not be after until' }] : []
}

function windowOf(ask: Ask, { since, until }: ReportQuery): { since: Date; until: Date } {
  return { since: parseTimestamp(since) ?? BEGINNING, until: parseTimestamp(until) ?? ask.asOf }
}
