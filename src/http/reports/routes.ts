import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import { describePolicy } from '../../domain/billing/policy.ts'
import { csvLine } from '../../domain/csv.ts'
import type { Slice } from '../../domain/list-slices.ts'
import { toMajor } from '../../domain/money.ts'
import { momentIn } from '../../domain/time-zone.ts'
import { type TObject, type TSchema, Type } from '../../domain/typebox.ts'
import type { ValidationError } from '../../domain/validation-error.ts'
import type { Db } from '../../postgres/database.ts'
import { type AccountReport, accountReport } from '../../reports/accounts.ts'
import { type AcquisitionReport, acquisitionReport } from '../../reports/acquisition.ts'
import { type AttentionReport, attentionReport } from '../../reports/attention.ts'
import { closingOf } from '../../reports/closed.ts'
import {
  type MovementReport,
  type MovementTotals,
  movementReport,
  type RetentionReport,
  retentionReport,
} from '../../reports/movements.ts'
import { type OverviewReport, overviewReport } from '../../reports/overview.ts'
import { inSnapshot, QuestionError, type ReportList, type ReportQuestion } from '../../reports/question.ts'
import { reportingAttention, reportingOverview } from '../../reports/reporting.ts'
import { listClosings } from '../../store/billing/closings.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import type { MovementOrder, RetentionBase } from '../../store/reports/movements.ts'
import type { App } from '../app.ts'
import { wantsCsv } from '../paging.ts'
import { problems } from '../problems.ts'
import {
  BasisQuery,
  filterErrors,
  findCurrency,
  querySchema,
  REPORTING,
  type ReportQuery,
  readCurrency,
  readFilter,
  readPage,
  readWindow,
  toSlice,
  WindowQuery,
} from './query.ts'
import {
  AccountRow,
  CancellationRow,
  CohortRow,
  ExclusionRow,
  ItemRow,
  jsonRow,
  MovementListRow,
  PaymentIssueRow,
  Rates,
  RenewalRow,
  type Row,
  SourceRow,
  TimelineRow,
  textRow,
  UpcomingBillingRow,
} from './rows.ts'
import {
  AccountBody,
  AcquisitionBody,
  AttentionBody,
  Coverage,
  MovementsBody,
  OverviewBody,
  RetentionBody,
} from './schemas.ts'

const CSV = 'With `Accept: text/csv`, the response is one of the lists as CSV.'
const WindowDays = (description: string) => Type.Integer({ enum: [30, 60, 90], default: 30, description })
const MAX_MONTHS = 60

export function subscriptionRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/overview',
    summary: 'Subscription overview',
    description: `MRR with its movements and rates, the accounts, acquisition sources and exclusions behind it, and how complete the data is (\`coverage\`). ${CSV}`,
    pages: { accounts: 'page', acquisition_sources: 'acquisition_page', exclusions: 'exclusion_page' },
    own: BasisQuery,
    body: OverviewBody,
    reporting: true,
    async build(db, question) {
      const report = question.isReporting ? reportingOverview : overviewReport
      return shownOverview(await report(db, question), question.currency)
    },
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/attention',
    summary: 'Payment issues, renewals, scheduled cancellations, upcoming billing',
    description: `Open payment issues are listed regardless of the window. ${CSV}`,
    pages: {
      payment_issues: 'issue_page',
      renewals: 'renewal_page',
      cancellations: 'cancel_page',
      upcoming_billing: 'billing_page',
    },
    own: { days: WindowDays('The number of days ahead') },
    body: AttentionBody,
    reporting: true,
    async build(db, question, query) {
      const report = question.isReporting ? reportingAttention : attentionReport
      return shownAttention(await report(db, question, Number(query.days)))
    },
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/acquisition',
    summary: 'Current MRR and retention by acquisition source',
    description: `Every account has one source, or is \`unattributed\`, so the rows add up to MRR. ${CSV}`,
    pages: { sources: 'page' },
    own: { horizon: WindowDays('The age of the cohort in days'), ...BasisQuery },
    body: AcquisitionBody,
    reporting: true,
    build: async (db, question, query) =>
      shownAcquisition(await acquisitionReport(db, question, Number(query.horizon)), question.currency),
  })
  accountRoute(app, deps)
  movementRoutes(app, deps)
}

function accountRoute(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/account',
    summary: 'One account: summary, items, timeline',
    description: `By \`customer\` or \`subscription_id\`. If both are given, they must belong together. ${CSV}`,
    pages: { items: 'page', timeline: 'timeline_page' },
    own: {
      customer: Type.Optional(Type.String({ minLength: 1, description: 'The `customer` of an account row' })),
      subscription_id: Type.Optional(
        Type.String({ minLength: 1, description: 'Instead of customer: one of its subscriptions' }),
      ),
    },
    body: AccountBody,
    problems: [404],
    errors: ({ customer, subscription_id }) =>
      customer === undefined && subscription_id === undefined
        ? [{ pointer: '/customer', message: 'is required, unless subscription_id is given' }]
        : [],
    async build(db, question, query) {
      const report = await accountReport(db, question, {
        customer: (query.customer as string | undefined) ?? null,
        subscriptionId: (query.subscription_id as string | undefined) ?? null,
      })
      if (!report) throw problems.unknown('account', String(query.customer ?? query.subscription_id))
      return shownAccount(report, question.currency)
    },
  })
}

function movementRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/movements',
    summary: 'Movements of MRR, the oldest or the largest first',
    description:
      'After `since` and up to `until`, by effective time: opening + new + expansion + reactivation − contraction − churn = closing. With `Accept: text/csv`, all rows are exported.',
    pages: { movements: 'page' },
    own: {
      ...WindowQuery('Movements'),
      ...BasisQuery,
      order: Type.Enum(['time', 'size'], {
        default: 'time',
        description: 'time: the oldest first; size: the largest change first, positive or negative',
      }),
    },
    body: MovementsBody,
    reporting: true,
    flat: 'movements',
    build: async (db, question, query) =>
      shownMovements(
        await movementReport(db, question, readWindow(question, query), query.order as MovementOrder),
        question.currency,
      ),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/retention',
    summary: 'Monthly cohorts: gross and net revenue retention, logo retention',
    description: `A cohort contains the accounts that first paid in a month. A row is the state of a cohort at the end of one month. ${CSV}`,
    pages: { cohorts: 'page' },
    own: {
      ...BasisQuery,
      months: Type.Integer({
        minimum: 1,
        maximum: MAX_MONTHS,
        default: 12,
        description: 'The number of monthly cohorts, including the current month',
      }),
      retention_base: Type.Optional(
        Type.Enum(['first_instant', 'end_of_month'], {
          description:
            'The starting MRR of a cohort: the first MRR of its accounts, or their MRR at the end of the first month; default: the setting of the policy',
        }),
      ),
    },
    body: RetentionBody,
    reporting: true,
    build: async (db, question, query) =>
      shownRetention(
        await retentionReport(db, question, {
          months: Number(query.months),
          base: (query.retention_base as RetentionBase | undefined) ?? question.policy.retentionBase,
        }),
      ),
  })
}

// Response bodies: amounts in major units, with the field names of the API.

function shownOverview(report: OverviewReport, currency: string): ShownReport {
  const { attention, invoiced, collected } = report
  const money = (minor: number) => toMajor(minor, currency)
  return {
    facts: {
      mrr: money(report.mrr),
      arr: money(report.arr),
      arpa: money(report.arpa),
      committed_mrr: money(report.committedMrr),
      active_subscriptions: report.activeSubscriptions,
      active_accounts: report.activeAccounts,
      coverage: jsonRow(Coverage, report.coverage, currency),
      attention: {
        payment_issues: attention.paymentIssues,
        renewals: attention.renewals,
        cancellations: attention.cancellations,
        upcoming_billing: attention.upcomingBilling,
      },
      invoiced: { amount: money(invoiced.amount), count: invoiced.count },
      collected: {
        amount: money(collected.amount),
        count: collected.count,
        refunded: money(collected.refunded),
        disputed: money(collected.disputed),
        one_off: money(collected.oneOff),
      },
      movements: { window_days: report.windowDays, ...shownTotals(report.movements, currency) },
      rates: jsonRow(Rates, report.rates, currency),
      ...(report.olderRates && { older_rates: report.olderRates }),
    },
    lists: {
      accounts: shown(AccountRow, report.accounts),
      acquisition_sources: shown(SourceRow, report.acquisitionSources),
      exclusions: shown(ExclusionRow, report.exclusions),
    },
  }
}

function shownAttention(report: AttentionReport): ShownReport {
  return {
    facts: { days: report.days },
    lists: {
      payment_issues: shown(PaymentIssueRow, report.paymentIssues),
      renewals: shown(RenewalRow, report.renewals),
      cancellations: shown(CancellationRow, report.cancellations),
      upcoming_billing: shown(UpcomingBillingRow, report.upcomingBilling),
    },
  }
}

function shownAcquisition(report: AcquisitionReport, currency: string): ShownReport {
  return {
    facts: {
      horizon: report.horizon,
      mrr: toMajor(report.mrr, currency),
      coverage: jsonRow(Coverage, report.coverage, currency),
    },
    lists: { sources: shown(SourceRow, report.sources) },
  }
}

function shownAccount(report: AccountReport, currency: string): ShownReport {
  return {
    facts: { summary: jsonRow(AccountRow, report.summary, currency) },
    lists: { items: shown(ItemRow, report.items), timeline: shown(TimelineRow, report.timeline) },
  }
}

function shownMovements(report: MovementReport, currency: string): ShownReport {
  const { since, until, totals } = report
  return {
    facts: { since, until, totals: shownTotals(totals, currency) },
    lists: { movements: shown(MovementListRow, report.movements) },
  }
}

function shownTotals(totals: MovementTotals, currency: string) {
  const money = (minor: number) => toMajor(minor, currency)
  return {
    opening_mrr: money(totals.openingMrr),
    new: money(totals.new),
    expansion: money(totals.expansion),
    contraction: money(totals.contraction),
    churn: money(totals.churn),
    reactivation: money(totals.reactivation),
    ...(totals.fx !== undefined && { fx: money(totals.fx) }),
    net: money(totals.net),
    closing_mrr: money(totals.closingMrr),
  }
}

function shownRetention(report: RetentionReport): ShownReport {
  const { months, base, cohorts } = report
  return { facts: { months, retention_base: base }, lists: { cohorts: shown(CohortRow, cohorts) } }
}

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
  /** Filters are rejected. */
  unfiltered?: true
  /** Also in the reporting currency. */
  reporting?: true
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
        querystring: querySchema(route.pages, route.own, route),
        response: { 200: route.body },
      },
    },
    async (request, reply) => {
      const query = request.query as unknown as ReportQuery
      const errors = [...(route.errors?.(query) ?? []), ...(route.unfiltered ? filterErrors(query) : [])]
      const given = readCurrency(request, errors, route.reporting)
      const { tenantId } = request.caller
      const askedAt = now()
      const list = wantsCsv(request) ? (query.list ?? route.whole ?? Object.keys(route.pages)[0]!) : null
      const answer = await inSnapshot(pool, async db => {
        const closings = query.basis === 'as_closed' ? await listClosings(db, tenantId) : []
        // a series follows a closing in each bucket
        const closing = route.own && 'interval' in route.own ? null : closingOf(closings, query, askedAt)
        const applied = await appliedPolicy(db, tenantId)
        const policy = closing?.policy ?? applied
        const asOf = momentIn(policy.timeZone, query.as_of) ?? askedAt
        // a month that was closed is converted by the rates of its closing, to the currency that is set now
        const currency = findCurrency(given, applied)
        const question = {
          tenantId,
          currency,
          isReporting: given === REPORTING,
          asOf,
          now: askedAt,
          policy,
          ...{ closing, closings },
          filter: route.unfiltered ? {} : readFilter(query, route.own),
        }
        const read = async () => {
          const report = await route.build(db, question, query)
          if (list === null) return jsonBody(question, route, query, report)
          return csvText(question, report.lists[list]!, requestedSlice(request, route, query, list))
        }
        return read().catch(asProblem)
      })
      if (list !== null) {
        reply.header('content-type', 'text/csv; charset=utf-8')
        reply.header('content-disposition', `attachment; filename="${list}-${given}.csv"`)
      }
      return reply.send(answer)
    },
  )
}

export function asProblem(error: unknown): never {
  if (error instanceof QuestionError) throw problems.invalid([{ pointer: error.pointer, message: error.message }])
  throw error
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
