import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { reports } from '../../api/data.ts'
import { nullOn, statusOf } from '../../api/request.ts'
import type { HistoryReport, OverviewReport } from '../../api/types.ts'
import { useFollowed } from '../../components/followed.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page, Section } from '../../components/page.ts'
import { DAY_MS } from '../../day.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { isAdmin, tenant } from '../../session.ts'
import { Headline } from '../subscriptions/figures.ts'
import { MrrPlot } from '../subscriptions/history-plots.ts'
import { reportIn, scopeOf } from '../subscriptions/report.ts'
import { hasSubscriptions } from '../subscriptions/report-page.ts'
import { type Activity, followed, readActivity } from './activity.ts'
import { Newest, Today } from './activity-sections.ts'
import { FirstRun } from './first-run.ts'
import { HealthSigns } from './health.ts'
import { Decisions } from './status.ts'

const MRR_DAYS = 90

type Revenue = { report: OverviewReport; history: HistoryReport | null }
type Overview = { activity: Activity; revenue: Revenue | null }

export const page = definePage(
  'overview',
  async ({ signal }): Promise<Overview | null> => {
    if (isAdmin.peek() && tenant.peek() === null) return null
    const [activity, revenue] = await Promise.all([readActivity(signal), readRevenue(signal)])
    return { activity, revenue }
  },
  ({ data }) => (data ? h(Followed, data) : h(Page, { title: 'Overview' }, h(NoTenant, {}))),
)

function Followed({ activity, revenue }: Overview): VNode {
  const isFollowing = useSignal(true)
  const current = useFollowed(activity, { next: followed, isOn: isFollowing })
  const toggle = (event: Event) => {
    isFollowing.value = (event.currentTarget as HTMLInputElement).checked
  }
  return h(
    Page,
    {
      title: 'Overview',
      actions: html`
        <label class="check">
          <input type="checkbox" id="live" checked=${isFollowing.value} onChange=${toggle} />Live updates
        </label>
      `,
    },
    h(FirstRun, { begun: current.begun }),
    h(Decisions, { activity: current, revenue: revenue?.report ?? null }),
    h(Today, { activity: current }),
    revenue && h(RevenueSection, revenue),
    current.health && h(HealthSigns, { health: current.health, hours: current.eventHours }),
    h(Newest, { activity: current }),
  )
}

function RevenueSection({ report, history }: Revenue): VNode {
  return h(
    Section,
    { title: 'Subscriptions' },
    h(Headline, { report }),
    history && html`<h3>MRR in the last ${MRR_DAYS} days</h3>`,
    history && h(MrrPlot, { history, height: 180 }),
    html`<p class="further"><a href=${link('subscriptions')}>Full report</a></p>`,
  )
}

/** The report's numbers, or null: the overview does not wait for a business without subscriptions. */
async function readRevenue(signal: AbortSignal): Promise<Revenue | null> {
  try {
    const scope = await scopeOf(new URLSearchParams(), signal)
    const report = await reportIn(scope, reports.overview({ ...scope, page_size: 1 }, signal))
    if (!hasSubscriptions(report)) return null
    const from = new Date(Date.now() - MRR_DAYS * DAY_MS).toISOString()
    const asked = { currency: scope.currency, interval: 'day', from }
    return { report, history: await nullOn(404, reports.history(asked, signal)) }
  } catch (error) {
    if (statusOf(error) === 401) throw error
    return null
  }
}

function NoTenant(): VNode {
  return h(EmptyState, {
    title: 'No tenant yet.',
    text: 'A tenant holds the data of one business.',
    action: html`<a href=${link('tenants')}>Create a tenant</a>`,
  })
}
