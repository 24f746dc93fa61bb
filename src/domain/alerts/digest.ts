import { MOVEMENT_TYPES, type MovementType } from '../billing/account.ts'
import { escapeHtml, htmlPage, lines, oneLine, type Readable } from '../destinations/markup.ts'
import { minorDigits } from '../money.ts'
import { DAY_MS, type Day, toDay } from '../time.ts'
import { dayIn, hourIn } from '../time-zone.ts'

export const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const
export type Weekday = (typeof WEEKDAYS)[number]

/** When a digest is sent, in the tenant's time zone. */
export type DigestSchedule = { weekday: Weekday; hour: number }
export const DEFAULT_SCHEDULE: DigestSchedule = { weekday: 'monday', hour: 8 }

const WEEK_DAYS = 7

/** The last time at which a digest was due. */
export function lastDue({ weekday, hour }: DigestSchedule, zone: string, now: Date): Date {
  const today = Date.parse(`${dayIn(zone, now)}T00:00:00Z`)
  // 1970-01-01 was a Thursday
  const daysSince = (today / DAY_MS + 3 - WEEKDAYS.indexOf(weekday)) % WEEK_DAYS
  const due = (daysAgo: number) => hourIn(zone, toDay(today - daysAgo * DAY_MS), hour)
  const latest = due(daysSince)
  return latest <= now ? latest : due(daysSince + WEEK_DAYS)
}

export function nextDue(schedule: DigestSchedule, zone: string, now: Date): Date {
  const last = Date.parse(`${dayIn(zone, lastDue(schedule, zone, now))}T00:00:00Z`)
  return hourIn(zone, toDay(last + WEEK_DAYS * DAY_MS), schedule.hour)
}

/** The seven days before the day on which a digest is due. */
export function digestWeek(zone: string, due: Date): { first: Day; last: Day } {
  const day = Date.parse(`${dayIn(zone, due)}T00:00:00Z`)
  return { first: toDay(day - WEEK_DAYS * DAY_MS), last: toDay(day - DAY_MS) }
}

/** Amounts are in major units. */
export type Digest = {
  tenant: string
  tenant_name: string
  time_zone: string
  /** The first and the last day. */
  from: Day
  to: Day
  /** All currencies, converted. Null: no reporting currency, or a rate is missing. */
  reporting: DigestFigures | null
  currencies: DigestFigures[]
  attention: {
    /** By currency. */
    failed_payments: { currency: string; count: number; mrr_at_risk: number }[]
    dead_letters: number
    /** Sources without an event in the week. */
    quiet_sources: { id: string; name: string; last_event_at: string | null }[]
    failing_destinations: { id: string; name: string }[]
  }
}

export type DigestFigures = {
  currency: string
  /** At the end of the week, and a week earlier. */
  mrr: number
  mrr_before: number
  movements: Record<MovementType, number> & { fx?: number }
  /** The change of MRR in the week, and in the week before. */
  net: number
  net_before: number
  /** The largest new and returned accounts, and the largest that left. */
  came: DigestAccount[]
  left: DigestAccount[]
}

type DigestAccount = { customer: string; name: string | null; mrr: number }

/** One section: a title and its rows. */
type Block = { title: string; rows: [label: string, value: string][] }

export function renderDigest(digest: Digest, consoleUrl: string | null): Readable {
  const name = oneLine(digest.tenant_name)
  const week = `${formatDay(digest.from)} to ${formatDay(digest.to)}`
  const main = digest.reporting ?? digest.currencies[0]
  const headline = main
    ? `MRR ${money(main.mrr, main.currency)} (${signed(main.net, main.currency)})`
    : 'no subscriptions'
  const subject = `[${name}] Week ending ${formatDay(digest.to)}: ${headline}`
  const blocks = [
    ...(digest.reporting ? [figuresBlock(digest.reporting, `All currencies in ${digest.reporting.currency}`)] : []),
    ...digest.currencies.map(figures => figuresBlock(figures, figures.currency)),
    attentionBlock(digest.attention),
  ]
  const link = consoleUrl && `${consoleUrl}#/overview?tenant=${encodeURIComponent(digest.tenant)}`
  const foot = `Days are in the time zone ${digest.time_zone}.`
  const text = lines([`${name}, ${week}`, ...blocks.flatMap(textBlock), '', link && `Console: ${link}`, foot])
  return {
    subject,
    text,
    html: htmlPage([
      `<h1 style="font-size:18px">${escapeHtml(name)}</h1><p>${escapeHtml(week)}</p>`,
      ...blocks.map(htmlBlock),
      link && `<p><a href="${escapeHtml(link)}">Open the console</a></p>`,
      `<p style="color:#666">${escapeHtml(foot)}</p>`,
    ]),
    chat: text,
  }
}

const LABELS: Record<MovementType, string> = {
  new: 'New',
  expansion: 'Expansion',
  contraction: 'Contraction',
  churn: 'Churn',
  reactivation: 'Reactivation',
}
const IS_LOSS: Partial<Record<MovementType, boolean>> = { contraction: true, churn: true }

function figuresBlock(figures: DigestFigures, title: string): Block {
  const { currency, mrr, mrr_before, movements, net, net_before, came, left } = figures
  const share = mrr_before > 0 ? `, ${signedNumber(Math.round((net / mrr_before) * 1_000) / 10)}%` : ''
  return {
    title,
    rows: [
      ['MRR', `${money(mrr, currency)} (${signed(net, currency)}${share})`],
      ['MRR one week earlier', money(mrr_before, currency)],
      ['Net change in the previous week', signed(net_before, currency)],
      ...MOVEMENT_TYPES.map((type): [string, string] => {
        const amount = movements[type]
        return [LABELS[type], amount === 0 ? money(0, currency) : signed(IS_LOSS[type] ? -amount : amount, currency)]
      }),
      ...(movements.fx ? [['Exchange rates', signed(movements.fx, currency)] as [string, string]] : []),
      ...came.map((account): [string, string] => [
        `Account gained: ${accountName(account)}`,
        money(account.mrr, currency),
      ]),
      ...left.map((account): [string, string] => [
        `Account lost: ${accountName(account)}`,
        money(account.mrr, currency),
      ]),
    ],
  }
}

function attentionBlock(attention: Digest['attention']): Block {
  const { failed_payments, dead_letters, quiet_sources, failing_destinations } = attention
  const rows: Block['rows'] = [
    ...failed_payments.map(({ currency, count, mrr_at_risk }): [string, string] => [
      `Failed payments in ${currency}`,
      `${count}, MRR at risk ${money(mrr_at_risk, currency)}`,
    ]),
    ...(dead_letters > 0 ? [['Dead letters', String(dead_letters)] as [string, string]] : []),
    ...quiet_sources.map(({ name, last_event_at }): [string, string] => [
      `No events from ${oneLine(name)}`,
      last_event_at === null ? 'none received yet' : `last event on ${formatDay(last_event_at.slice(0, 10))}`,
    ]),
    ...failing_destinations.map(({ name }): [string, string] => [`Failing destination`, oneLine(name)]),
  ]
  return { title: 'Needs attention', rows: rows.length > 0 ? rows : [['Nothing', '']] }
}

function accountName({ customer, name }: DigestAccount): string {
  return oneLine(name ?? customer)
}

function textBlock({ title, rows }: Block): string[] {
  return ['', title, ...rows.map(([label, value]) => (value === '' ? `  ${label}` : `  ${label}: ${value}`))]
}

function htmlBlock({ title, rows }: Block): string {
  const cells = rows.map(
    ([label, value]) =>
      `<tr><td style="padding:2px 16px 2px 0">${escapeHtml(label)}</td><td style="padding:2px 0;text-align:right">${escapeHtml(value)}</td></tr>`,
  )
  return `<h2 style="font-size:15px;margin:20px 0 4px">${escapeHtml(title)}</h2>\n<table style="border-collapse:collapse">\n${cells.join('\n')}\n</table>`
}

function money(amount: number, currency: string): string {
  const digits = minorDigits(currency)
  const number = new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${currency} ${number.format(amount)}`
}

function signed(amount: number, currency: string): string {
  const sign = amount > 0 ? '+' : amount < 0 ? '-' : ''
  return `${sign}${money(Math.abs(amount), currency)}`
}

function signedNumber(value: number): string {
  return value > 0 ? `+${value}` : String(value)
}

/** Loading the formats of dates takes 25 ms, so a start does not. */
function formatDay(day: Day): string {
  const format = { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' } as const
  return new Date(`${day}T00:00:00Z`).toLocaleDateString('en', format)
}
