import type { Query } from './http.ts'
import type { Api } from './records.ts'
import type { Report, ReportName, ReportQuery, ReportRow } from './types.ts'

export type Subscriptions = ReturnType<typeof openSubscriptions>

type Page = { as_of: string; results?: unknown[]; pages?: number }

export function openSubscriptions(api: Api) {
  const pathOf = (name: ReportName) => `/v1/subscriptions/${name}`
  const report =
    <Name extends ReportName>(name: Name) =>
    (query: ReportQuery<Name>): Promise<Report<Name>> =>
      api.get(pathOf(name), query as Query)

  /** A function that walks through one of a report's lists. All pages show the same moment: that of the first. */
  const listOf = <Name extends ReportName, List extends keyof Report<Name> & string>(
    name: Name,
    list: List,
    parameter: string,
  ) =>
    async function* (query: ReportQuery<Name>): AsyncGenerator<ReportRow<Name, List>, void, undefined> {
      let asOf = (query as Query).as_of
      for (let page = 1, pages = 1; page <= pages; page++) {
        const sent = { page_size: 100, ...(query as Query), as_of: asOf, [parameter]: page }
        const answer = await api.get<Page & Record<string, Page>>(pathOf(name), sent)
        const shown = list === 'results' ? answer : answer[list]!
        yield* shown.results as ReportRow<Name, List>[]
        asOf ??= answer.as_of
        pages = shown.pages!
      }
    }

  return {
    /** MRR and everything that explains it. */
    overview: report('overview'),
    /** Payment issues, renewals, scheduled cancellations, upcoming billing. */
    attention: report('attention'),
    /** Current MRR by acquisition source, and what was retained. */
    acquisition: report('acquisition'),
    /** One account, by `customer` or `subscription_id`: summary, items, timeline. null where there is none. */
    account: (query: ReportQuery<'account'>): Promise<Report<'account'> | null> =>
      api.find(pathOf('account'), query as Query),
    /** Monthly cohorts. */
    retention: report('retention'),
    /** MRR by day, week or month, and what moved it. */
    history: report('history'),
    /** MRR by plan, interval, source or country. */
    breakdown: report('breakdown'),
    /** What was invoiced and paid, by day, week or month. */
    cash: report('cash'),
    /** MRR of all currencies in one, by the rates that the tenant supplied. */
    consolidated: report('consolidated'),

    // The lists of the reports, row by row over all pages.
    accounts: listOf('overview', 'accounts', 'page'),
    exclusions: listOf('overview', 'exclusions', 'exclusion_page'),
    paymentIssues: listOf('attention', 'payment_issues', 'issue_page'),
    renewals: listOf('attention', 'renewals', 'renewal_page'),
    cancellations: listOf('attention', 'cancellations', 'cancel_page'),
    upcomingBilling: listOf('attention', 'upcoming_billing', 'billing_page'),
    sources: listOf('acquisition', 'sources', 'page'),
    items: listOf('account', 'items', 'page'),
    timeline: listOf('account', 'timeline', 'timeline_page'),
    movements: listOf('movements', 'results', 'page'),
    trials: listOf('trials', 'results', 'page'),
    failedInvoices: listOf('dunning', 'results', 'page'),
    cashFacts: listOf('cash/facts', 'results', 'page'),
  }
}
