import type pg from 'pg'
import { type Digest, type DigestFigures, digestWeek } from '../domain/alerts/digest.ts'
import { MOVEMENT_TYPES } from '../domain/billing/account.ts'
import { stripNamespaces } from '../domain/billing/namespace.ts'
import { toMajor } from '../domain/money.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS, toDay } from '../domain/time.ts'
import { startOfDayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import { countOpenDeadLetters } from '../store/alerts/alerts.ts'
import { listQuietSources } from '../store/alerts/digests.ts'
import { appliedPolicy } from '../store/billing/policies.ts'
import { listFailing } from '../store/destinations/destinations.ts'
import { usedCurrencies } from '../store/reports/currencies.ts'
import { attentionReport } from './attention.ts'
import { type MovementReport, movementReport, type Window } from './movements.ts'
import { inSnapshot, QuestionError, type ReportQuestion, sum } from './question.ts'

const MAX_ACCOUNTS = 5
// Movements are read by size. Smaller ones than these are not among the largest accounts.
const MAX_MOVEMENTS = 1_000
const MAX_ISSUES = 1_000
const ATTENTION_DAYS = 30

/** The digest of the seven days before `due`, in the tenant's time zone. */
export async function digestReport(
  pool: pg.Pool,
  tenant: { id: number; name: string },
  { due, now }: { due: Date; now: Date },
): Promise<Digest> {
  return inSnapshot(pool, async db => {
    const policy = await appliedPolicy(db, tenant.id)
    const zone = policy.timeZone
    const { first, last } = digestWeek(zone, due)
    const startOf = (day: string, shift = 0) => startOfDayIn(zone, toDay(Date.parse(`${day}T00:00:00Z`) + shift))
    const [before, start, end] = [startOf(first, -7 * DAY_MS), startOf(first), startOf(last, DAY_MS)]
    const weeks = { week: windowOf(start, end), weekBefore: windowOf(before, start) }
    const base = { tenantId: tenant.id, asOf: weeks.week.until, now, policy, filter: {} }
    const currencies = await usedCurrencies(db, tenant.id)
    const figures: DigestFigures[] = []
    for (const currency of currencies) {
      const own = await readFigures(db, { ...base, currency }, weeks)
      if (own !== null) figures.push(own)
    }
    const { reportingCurrency } = policy
    return {
      ...{ tenant: publicTenantId(tenant.id), tenant_name: tenant.name, time_zone: zone, from: first, to: last },
      reporting:
        reportingCurrency === null
          ? null
          : await readReporting(db, { ...base, currency: reportingCurrency, isReporting: true }, weeks),
      currencies: figures,
      attention: await readAttention(db, { ...base, asOf: now }, { currencies, since: start }),
    }
  })
}

type Weeks = { week: Window; weekBefore: Window }

const windowOf = (from: Date, to: Date): Window => ({
  since: new Date(from.getTime() - 1),
  until: new Date(to.getTime() - 1),
})

/** Null if a rate is missing. */
async function readReporting(db: Db, question: ReportQuestion, weeks: Weeks): Promise<DigestFigures | null> {
  try {
    return await readFigures(db, question, weeks)
  } catch (error) {
    if (error instanceof QuestionError) return null
    throw error
  }
}

/** Null if nothing happened and there is no MRR. */
async function readFigures(db: Db, question: ReportQuestion, weeks: Weeks): Promise<DigestFigures | null> {
  const { currency } = question
  const report = await movementReport(db, question, weeks.week, 'size')
  const { totals, movements } = report
  if (totals.closingMrr === 0 && totals.openingMrr === 0 && movements.count === 0) return null
  const previous = await movementReport(db, { ...question, asOf: weeks.weekBefore.until }, weeks.weekBefore)
  const major = (minor: number) => toMajor(minor, currency)
  const byType = Object.fromEntries(MOVEMENT_TYPES.map(type => [type, major(totals[type])]))
  return {
    ...{ currency, mrr: major(totals.closingMrr), mrr_before: major(totals.openingMrr) },
    movements: {
      ...(byType as DigestFigures['movements']),
      ...(totals.fx !== undefined && { fx: major(totals.fx) }),
    },
    ...{ net: major(totals.net), net_before: major(previous.totals.net) },
    ...(await largestAccounts(report, major)),
  }
}

async function largestAccounts(
  { movements }: MovementReport,
  major: (minor: number) => number,
): Promise<Pick<DigestFigures, 'came' | 'left'>> {
  const rows = await movements.rows({ offset: 0, limit: Math.min(movements.count, MAX_MOVEMENTS) })
  const largest = (...types: string[]) =>
    rows
      .filter(({ movementType }) => types.includes(movementType))
      .slice(0, MAX_ACCOUNTS)
      .map(({ customer, customerName, mrrDelta }) => ({
        ...{ customer: stripNamespaces(customer), name: customerName, mrr: major(Math.abs(mrrDelta)) },
      }))
  return { came: largest('new', 'reactivation'), left: largest('churn') }
}

async function readAttention(
  db: Db,
  base: Omit<ReportQuestion, 'currency'>,
  { currencies, since }: { currencies: string[]; since: Date },
): Promise<Digest['attention']> {
  const { tenantId, now } = base
  const failed: Digest['attention']['failed_payments'] = []
  for (const currency of currencies) {
    const { paymentIssues } = await attentionReport(db, { ...base, currency }, ATTENTION_DAYS)
    if (paymentIssues.count === 0) continue
    const rows = await paymentIssues.rows({ offset: 0, limit: Math.min(paymentIssues.count, MAX_ISSUES) })
    // A subscription may have several unpaid invoices.
    const bySubscription = new Map(rows.map(row => [row.subscriptionId ?? row.invoiceId, row]))
    const atRisk = sum([...bySubscription.values()], ({ mrrAtRisk }) => mrrAtRisk)
    failed.push({ currency, count: paymentIssues.count, mrr_at_risk: toMajor(atRisk, currency) })
  }
  const quiet = await listQuietSources(db, tenantId, since)
  const failing = (await listFailing(db, now)).filter(destination => destination.tenantId === tenantId)
  return {
    failed_payments: failed,
    dead_letters: (await countOpenDeadLetters(db, tenantId))[0]?.count ?? 0,
    quiet_sources: quiet.map(({ id, name, lastAt }) => ({ id, name, last_event_at: lastAt?.toISOString() ?? null })),
    failing_destinations: failing.map(({ id, name }) => ({ id, name })),
  }
}
