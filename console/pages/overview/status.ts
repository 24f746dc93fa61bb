import type { ComponentChildren, VNode } from 'preact'
import type { Destination, Health, OverviewReport } from '../../api/types.ts'
import { Section } from '../../components/page.ts'
import { Ago, Time } from '../../components/time.ts'
import { lowerWords, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import type { Activity } from './activity.ts'

const SOON_DAYS = 14

type StatusProps = { activity: Activity; revenue: OverviewReport | null }

/** What waits for a decision, worst first; nothing where nothing does. */
export function Decisions({ activity, revenue }: StatusProps): VNode | null {
  const issues = issuesIn({ activity, revenue })
  if (issues.length === 0) return activity.health && html`<p class="calm">${calmWords(activity.health)}</p>`
  return h(
    Section,
    { title: 'Needs attention' },
    html`<ul class="notice">${issues.map(issue => html`<li>${issue}</li>`)}</ul>`,
  )
}

const LATE_MS = 60_000

/** What has just come in is on its way; what has waited for longer is not. */
function isLate(waiting: Health['retrying'] | null): boolean {
  const oldest = waiting?.oldest_at
  return Boolean(oldest) && Date.now() - new Date(oldest!).getTime() > LATE_MS
}

function calmWords({ waiting, installation }: Health): string {
  const own =
    waiting === null
      ? ''
      : waiting.entries === 0
        ? ', nothing waiting to be processed'
        : `, ${plural(waiting.entries, 'request')} being processed`
  const others = (installation?.waiting?.entries ?? 0) - (waiting?.entries ?? 0)
  const more = others > 0 ? ` ${plural(others, 'request is', 'requests are')} waiting for other tenants.` : ''
  return `No problems: no dead letters, no rejected requests, all messages delivered${own}.${more}`
}

/** What is told by a line of its own anyway. */
const TOLD = new Set(['dead_letters', 'refused_share'])

function issuesIn({ activity, revenue }: StatusProps): ComponentChildren[] {
  const { health, alerts, lastRefused, failing } = activity
  const payments = revenue?.attention.payment_issues ?? 0
  const raised = (alerts ?? []).filter(({ rule }) => !TOLD.has(rule))
  return [
    ...raised.map(
      ({ rule, subject, summary, raised_at }) =>
        html`${summary} ${rule === 'source_silent' && subject && html`<a href=${link('source', { id: subject })}>View source</a>. `}Raised ${h(Ago, { at: raised_at })}.`,
    ),
    health &&
      health.dead_letters.open > 0 &&
      html`<a href=${link('deadLetters')}>${plural(health.dead_letters.open, 'dead letter')}</a> (<a href=${link('issues')}>by cause</a>).`,
    health &&
      health.refused.last_24_hours > 0 &&
      html`<a href=${link('issues')}>${plural(health.refused.last_24_hours, 'request')}</a> rejected in the last 24 hours${refusal(lastRefused)}.`,
    ...(failing ?? []).map(failingWords),
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
      html`The disk is ${Math.round((1 - health.disk_free) * 100)} % full.`,
    health &&
      health.disk_days_left !== null &&
      health.disk_days_left < SOON_DAYS &&
      html`At the current rate, the disk will be full in ${plural(Math.max(1, Math.floor(health.disk_days_left)), 'day')}.`,
    payments > 0 && html`<a href=${link('attention')}>${plural(payments, 'payment')}</a> failed or overdue.`,
  ].filter(Boolean) as ComponentChildren[]
}

function refusal(last: Activity['lastRefused']): ComponentChildren {
  return last && html`, most recently ${h(Ago, { at: last.rejected_at })}: ${lowerWords(last.code)}`
}

function failingWords({ id, name, health, disabled_reason: reason }: Destination): ComponentChildren {
  const destination = html`<a href=${link('destination', { id })}>${name}</a>`
  const waiting = health.pending > 0 && ` ${plural(health.pending, 'message is', 'messages are')} pending.`
  if (reason !== null) return html`${destination} is disabled. ${reason}${waiting}`
  return html`Deliveries to ${destination} have failed since ${h(Time, { at: health.failing_since })}.${waiting}`
}
