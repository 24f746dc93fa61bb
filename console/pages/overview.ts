import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import type { Amount } from '../amount.ts'
import type { Conversion, Destination, Event, Health, List, SeriesRow } from '../api/types.ts'
import { useLiveData } from '../components/live-data.ts'
import { MissingRate } from '../components/missing-rate.ts'
import { EmptyState } from '../components/notice.ts'
import { Page, Section, type Tile, Tiles } from '../components/page.ts'
import { Plot } from '../components/plot.ts'
import { Table } from '../components/table.ts'
import { Copyable } from '../components/text.ts'
import { Ago } from '../components/time.ts'
import { compactMoney, lowerWords, money, number, percent, plural } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { keyHint, recordCommand, trackCommand } from '../samples.ts'
import { isAdmin, tenant } from '../session.ts'
import { currency } from '../view.ts'
import { type Activity, readActivity, refreshActivity } from './activity.ts'
import { conversionColumns } from './conversions.ts'
import { DemoTenantForm } from './demo-tenant.ts'
import { eventColumns, type Names, NoEvents } from './events.ts'
import { courseSeries, courseTile, courseZoom, hasMrr } from './figures.ts'
import { findSender, type Sender } from './senders.ts'
import { MrrPlot, mrrTiles } from './subscriptions/figures.ts'

export const overviewPage = definePage(
  'overview',
  async ({ signal }): Promise<Activity | null> =>
    isAdmin.peek() && tenant.peek() === null ? null : readActivity(signal),
  ({ data }) => (data ? h(OverviewView, { activity: data }) : h(Page, { title: 'Overview' }, h(NoTenant, {}))),
)

function OverviewView({ activity }: { activity: Activity }): VNode {
  const isFollowing = useSignal(true)
  const current = useLiveData(activity, { next: refreshActivity, isOn: isFollowing })
  const { event: hasEvent, record: hasRecord, source: hasSource } = current.started
  // Before the first data, the first steps alone are clearer than zeros.
  const hasData = hasEvent || hasRecord || hasSource === true || knownMrr(current) !== null
  const toggle = (event: { currentTarget: EventTarget | null }) => {
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
    h(FirstRun, { started: current.started }),
    current.missingRate && h(MissingRate, { error: current.missingRate }),
    hasData && h(Figures, { activity: current }),
    h(AttentionList, { activity: current }),
    hasData && h(Courses, { activity: current }),
    current.health && h(HealthSigns, { health: current.health, hours: current.eventHours }),
    hasData && h(Newest, { activity: current }),
  )
}

/** MRR, unless there is none now or in the comparison. */
function knownMrr({ mrr }: Activity): Activity['mrr'] {
  return mrr && (hasMrr(mrr.now) || (mrr.before && hasMrr(mrr.before))) ? mrr : null
}

/** The five numbers of the business with their change. */
function Figures({ activity }: { activity: Activity }): VNode {
  const { revenue, conversionCount, visitors } = activity
  const mrr = knownMrr(activity)
  const shown = (value: Amount) => money(value, currency.value)
  const tiles = [
    ...(mrr ? mrrTiles(mrr) : []),
    revenue && courseTile('Revenue', revenue, { shown, href: link('conversions') }),
    conversionCount && courseTile('Conversions', conversionCount, { shown: number, href: link('conversions') }),
    visitors && courseTile('Visitors', visitors, { shown: number, href: link('events') }),
  ]
  return h(Tiles, { tiles })
}

/** Revenue and MRR over the period. */
function Courses({ activity }: { activity: Activity }): VNode {
  const { revenue, frame } = activity
  const mrr = knownMrr(activity)
  const code = currency.value
  const shown = (value: Amount) => money(value, code)
  const { comparison, step } = frame
  return html`
    <div class="plots">
      ${
        revenue &&
        h(
          Section,
          { title: 'Revenue' },
          h(Plot, {
            title: `Revenue in ${code}`,
            moments: revenue.now.moments,
            series: courseSeries('Revenue', revenue, frame),
            zoom: courseZoom(revenue, step),
            ...{ unit: step, shown, axisShown: compactMoney(code) },
          }),
        )
      }
      ${mrr && h(Section, { title: 'MRR' }, h(MrrPlot, { history: mrr, comparison }))}
    </div>
  `
}

function NoTenant(): VNode {
  return h(EmptyState, {
    title: 'No tenant yet.',
    text: 'A tenant holds the data of one business.',
    action: html`<a href=${link('tenants')}>Create a tenant</a>`,
  })
}

const SOON_DAYS = 14

type StatusProps = { activity: Activity }

/** What needs attention, worst first. */
function AttentionList({ activity }: StatusProps): VNode | null {
  const issues = listIssues({ activity })
  if (issues.length === 0) return activity.health && html`<p class="calm">${describeHealthy(activity.health)}</p>`
  return h(
    Section,
    { title: 'Needs attention' },
    html`<ul class="attention">${issues.map(issue => html`<li>${issue}</li>`)}</ul>`,
  )
}

const LATE_MS = 60_000

/** Requests that have waited for more than a minute. */
function isLate(waiting: Health['retrying'] | null): boolean {
  const oldest = waiting?.oldest_at
  return Boolean(oldest) && Date.now() - new Date(oldest!).getTime() > LATE_MS
}

function describeHealthy({ waiting, installation }: Health): string {
  const own =
    waiting === null
      ? ''
      : waiting.entries === 0
        ? ', nothing waiting to be processed'
        : `, ${plural(waiting.entries, 'request')} being processed`
  const others = (installation?.waiting?.entries ?? 0) - (waiting?.entries ?? 0)
  const more =
    others > 0
      ? ` ${plural(others, 'request')} of other tenants ${others === 1 ? 'is' : 'are'} waiting to be processed.`
      : ''
  return `No problems: no dead letters, no rejected requests, no failing deliveries${own}.${more}`
}

/** Rules whose cause has its own line. */
const LISTED_SEPARATELY = new Set(['dead_letters', 'refused_share'])

function listIssues({ activity }: StatusProps): ComponentChildren[] {
  const { health, alerts, lastRefused, failing } = activity
  const raised = (alerts ?? []).filter(({ rule }) => !LISTED_SEPARATELY.has(rule))
  return [
    ...raised.map(
      ({ rule, subject, summary, raised_at }) =>
        html`${summary} ${rule === 'source_silent' && subject && html`<a href=${link('source', { id: subject })}>View source</a>. `}Raised ${h(Ago, { at: raised_at })}.`,
    ),
    health &&
      health.dead_letters.open > 0 &&
      html`<a href=${link('deadLetters')}>${plural(health.dead_letters.open, 'dead letter')}</a> ${health.dead_letters.open === 1 ? 'needs' : 'need'} attention. <a href=${link('issues')}>View issues</a>`,
    health &&
      health.refused.last_24_hours > 0 &&
      html`<a href=${link('issues')}>${plural(health.refused.last_24_hours, 'request')}</a> ${health.refused.last_24_hours === 1 ? 'was' : 'were'} rejected in the last 24 hours.${lastRejection(lastRefused)}`,
    ...(failing ?? []).map(describeFailing),
    health &&
      isLate(health.waiting) &&
      html`${plural(health.waiting!.entries, 'request is', 'requests are')} waiting to be processed. The oldest arrived ${h(Ago, { at: health.waiting!.oldest_at! })}.`,
    health &&
      health.retrying.entries > 0 &&
      html`${plural(health.retrying.entries, 'request')} could not be processed yet and will be retried.`,
    health &&
      health.deferred.events > 0 &&
      html`${plural(health.deferred.events, 'event')} deferred because a source is over its rate limit.`,
    health &&
      health.disk_free !== null &&
      health.disk_free < 0.1 &&
      html`The disk is ${Math.round((1 - health.disk_free) * 100)}% full.`,
    health &&
      health.disk_days_left !== null &&
      health.disk_days_left < SOON_DAYS &&
      html`At the current rate, the disk will be full in ${plural(Math.max(1, Math.floor(health.disk_days_left)), 'day')}.`,
    ...activity.paymentIssues.map(
      ({ currency: code, count, isMore }) =>
        html`<a href=${link('attention', { currency: code })}>${isMore ? `${count}+ payments` : plural(count, 'payment')}</a> in ${code} failed or ${count === 1 && !isMore ? 'is' : 'are'} overdue.`,
    ),
  ].filter(Boolean) as ComponentChildren[]
}

function lastRejection(last: Activity['lastRefused']): ComponentChildren {
  return last && html` Latest: ${lowerWords(last.code)}, ${h(Ago, { at: last.rejected_at })}.`
}

function describeFailing({ id, name, health, disabled_reason: reason }: Destination): ComponentChildren {
  const destination = html`<a href=${link('destination', { id })}>${name}</a>`
  const waiting = health.pending > 0 && ` ${plural(health.pending, 'delivery is', 'deliveries are')} pending.`
  if (reason !== null) return html`${destination} is disabled. ${reason}${waiting}`
  return html`Deliveries to ${destination} started to fail ${h(Ago, { at: health.failing_since })}.${waiting}`
}

/** A longer forecast is not meaningful. */
const FAR_DAYS = 1_000

/** Health figures, some with the last 24 hours. */
function HealthSigns({ health, hours }: { health: Health; hours: SeriesRow[] | null }): VNode {
  const perHour = hours?.slice(-24).map(({ count }) => count) ?? []
  const { waiting, retrying, installation, deferred, dead_letters: letters, refused } = health
  const { disk_free: free, disk_days_left: days } = health
  const allTenants = installation?.waiting ?? null
  const tiles: (Tile | null)[] = [
    {
      label: 'Events in the last full hour',
      value: number(perHour.at(-2) ?? 0),
      spark: { label: 'Events per hour', values: perHour },
    },
    waiting && {
      label: 'Waiting for processing',
      value: number(waiting.entries),
      note: waiting.oldest_at ? html`<span>oldest ${h(Ago, { at: waiting.oldest_at })}</span>` : 'requests',
    },
    allTenants && allTenants.entries !== waiting?.entries
      ? {
          label: 'Waiting, all tenants',
          value: number(allTenants.entries),
          note: allTenants.oldest_at && html`<span>oldest ${h(Ago, { at: allTenants.oldest_at })}</span>`,
        }
      : null,
    retrying.entries > 0
      ? {
          label: 'Being retried',
          value: number(retrying.entries),
          note: retrying.oldest_at && html`<span>oldest ${h(Ago, { at: retrying.oldest_at })}</span>`,
        }
      : null,
    {
      label: 'Dead letters',
      value: number(letters.open),
      href: link('deadLetters'),
      spark: { label: 'Dead letters per hour', values: letters.by_hour, isBad: true },
    },
    {
      label: 'Rejected requests (24 h)',
      value: number(refused.last_24_hours),
      href: link('issues'),
      spark: { label: 'Rejected requests per hour', values: refused.by_hour, isBad: true },
    },
    {
      label: 'Deferred by rate limits',
      value: number(deferred.events),
      note: deferred.oldest_at ? html`<span>oldest ${h(Ago, { at: deferred.oldest_at })}</span>` : 'events',
    },
    free === null
      ? null
      : {
          label: 'Server disk used',
          value: percent(1 - free),
          note:
            days !== null && days < FAR_DAYS
              ? `full in ${plural(Math.max(1, Math.floor(days)), 'day')} at the current rate`
              : `${percent(free)} free`,
        },
  ]
  return h(Section, { title: 'Health' }, h(Tiles, { isSmall: true, tiles }))
}

function Newest({ activity: { events, conversions, names } }: { activity: Activity }): VNode {
  return html`<div class="beside">
    ${events && h(Section, { title: 'Newest events' }, h(NewestEvents, { events, names }))}
    ${
      conversions !== null &&
      conversions.results.length > 0 &&
      h(Section, { title: 'Newest conversions' }, h(NewestConversions, { conversions }))
    }
  </div>`
}

function NewestEvents({ events: { results }, names }: { events: List<Event>; names: Names }): VNode {
  if (results.length === 0) return h(NoEvents, {})
  return html`
    ${h(Table<Event>, {
      caption: 'Newest events',
      columns: [
        ...eventColumns(names).slice(0, 3),
        { label: 'Time', cell: ({ occurred_at }) => h(Ago, { at: occurred_at }) },
      ],
      rows: results,
      rowKey: ({ id }) => id,
    })}
    <p class="further"><a href=${link('events')}>All events</a></p>
  `
}

function NewestConversions({ conversions: { results } }: { conversions: List<Conversion> }): VNode {
  return html`
    ${h(Table<Conversion>, {
      caption: 'Newest conversions',
      columns: [
        ...conversionColumns.filter(({ label }) => label === 'Type' || label === 'Amount' || label === 'Person'),
        { label: 'Time', cell: ({ occurred_at }) => h(Ago, { at: occurred_at }) },
      ],
      rows: results,
      rowKey: ({ id }) => id,
    })}
    <p class="further"><a href=${link('conversions')}>All conversions</a></p>
  `
}

type Step = { title: string; isDone: boolean; how: VNode | null }

/** The first steps. Hidden once events and records or webhooks have arrived. */
function FirstRun({ started }: Pick<Activity, 'started'>): VNode | null {
  if (started.event && (started.record || started.source)) return null
  const steps: Step[] = [
    {
      title: 'Send an event',
      isDone: started.event,
      how: isAdmin.value
        ? h(ConnectLinks, { senders: ['curl', 'browser', 'sdk', 'segment'] })
        : h(Copyable, { text: trackCommand(), label: 'Copy the command' }),
    },
    {
      title: 'Write a record (product, contact or order)',
      isDone: started.record,
      how: h(Copyable, { text: recordCommand('products'), label: 'Copy the command' }),
    },
    {
      title: 'Connect Stripe, Shopify or another webhook sender',
      isDone: started.source === true,
      how: isAdmin.value ? h(ConnectLinks, { senders: ['stripe', 'shopify', 'woocommerce'] }) : null,
    },
  ]
  const list = h(
    Section,
    { title: 'First steps' },
    html`
      <ol class="steps">
        ${steps.map(
          ({ title, isDone, how }) => html`
            <li class=${isDone ? 'done' : 'open'}>
              <p>
                <span class="tick" aria-hidden="true">${isDone ? '✓' : ''}</span>
                ${title}<span class="unseen">${isDone ? ', done' : ', to do'}</span>
              </p>
              ${!isDone && how}
            </li>
          `,
        )}
      </ol>
      ${!started.record && html`<p class="faint">${keyHint('private')}</p>`}
    `,
  )
  const isEmpty = !started.event && !started.record
  return html`${list}${isEmpty && isAdmin.value && h(Section, { title: 'Explore with demo data' }, h(DemoTenantForm, {}))}`
}

/** Links to the instructions for each sender. */
function ConnectLinks({ senders }: { senders: Sender['name'][] }): VNode {
  return html`
    <p>
      ${senders.map((name, index) => [
        index > 0 && ' · ',
        html`<a href=${link('connect', { sender: name })}>${findSender(name).title}</a>`,
      ])}
    </p>
  `
}
