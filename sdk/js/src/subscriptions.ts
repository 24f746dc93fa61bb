import type { Query } from './http.ts'
import type { Api } from './records.ts'
import type { Books, BooksQuery, Report, ReportName, ReportQuery, ReportRow } from './types.ts'

export type Subscriptions = ReturnType<typeof openSubscriptions>

type Page = { as_of: string; results?: unknown[]; pages?: number }

export function openSubscriptions(api: Api) {
  const reportPath = (name: ReportName) => `/v1/subscriptions/${name}`
  const report =
    <Name extends ReportName>(name: Name) =>
    (query: ReportQuery<Name>): Promise<Report<Name>> =>
      api.get(reportPath(name), query as Query)

  /** Creates an iterator over a list of a report. All pages show the state at the time of the first page. */
  const iterateList = <Name extends ReportName, List extends keyof Report<Name> & string>(
    name: Name,
    list: List,
    parameter: string,
  ) =>
    async function* (query: ReportQuery<Name>): AsyncGenerator<ReportRow<Name, List>, void, undefined> {
      let asOf = (query as Query).as_of
      for (let page = 1, pages = 1; page <= pages; page++) {
        const sent = { page_size: 100, ...(query as Query), as_of: asOf, [parameter]: page }
        const answer = await api.get<Page & Record<string, Page>>(reportPath(name), sent)
        const shown = list === 'results' ? answer : answer[list]!
        yield* shown.results as ReportRow<Name, List>[]
        asOf ??= answer.as_of
        pages = shown.pages!
      }
    }

  return {
    /** MRR, movements and related metrics. */
    overview: report('overview'),
    /** Payment issues, renewals, scheduled cancellations, upcoming billing. */
    attention: report('attention'),
    /** Current MRR by acquisition source, and retention. */
    acquisition: report('acquisition'),
    /** One account, by `customer` or `subscription_id`: summary, items, timeline. null if there is none. */
    account: (query: ReportQuery<'account'>): Promise<Report<'account'> | null> =>
      api.find(reportPath('account'), query as Query),
    /** Monthly cohorts. */
    retention: report('retention'),
    /** MRR and its movements by day, week or month. */
    history: report('history'),
    /** MRR by plan, interval, source or country. */
    breakdown: report('breakdown'),
    /** Invoiced and paid amounts by day, week or month. */
    cash: report('cash'),
    /** MRR of all currencies converted to one, with the exchange rates of the tenant. */
    consolidated: report('consolidated'),
    /** Invoiced, recognized and deferred revenue by month. */
    revenue: report('revenue'),
    /** Scheduled changes, and the resulting MRR by month. */
    forecast: report('forecast'),
    /** Churned accounts and MRR by month and reason. */
    churnReasons: report('churn-reasons'),
    /** Closed months, and what changed in them since. */
    books: (query: BooksQuery = {}): Promise<Books> => api.get('/v1/subscriptions/books', query as Query),

    // The lists of the reports, row by row over all pages.
    accounts: iterateList('overview', 'accounts', 'page'),
    exclusions: iterateList('overview', 'exclusions', 'exclusion_page'),
    paymentIssues: iterateList('attention', 'payment_issues', 'issue_page'),
    renewals: iterateList('attention', 'renewals', 'renewal_page'),
    cancellations: iterateList('attention', 'cancellations', 'cancel_page'),
    upcomingBilling: iterateList('attention', 'upcoming_billing', 'billing_page'),
    sources: iterateList('acquisition', 'sources', 'page'),
    items: iterateList('account', 'items', 'page'),
    timeline: iterateList('account', 'timeline', 'timeline_page'),
    movements: iterateList('movements', 'results', 'page'),
    trials: iterateList('trials', 'results', 'page'),
    failedInvoices: iterateList('dunning', 'results', 'page'),
    cashFacts: iterateList('cash/facts', 'results', 'page'),
    revenueInvoices: iterateList('revenue/invoices', 'results', 'page'),
  }
}
