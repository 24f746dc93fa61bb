import { measureSilence, type Reading, type Rhythm } from '../domain/alerts/rules.ts'
import type { Db } from '../postgres/database.ts'
import { countOpenDeadLetters, countRejectedInLastHour, readWeeklyMrr } from '../store/alerts/alerts.ts'

const MIN_REJECTED = 10

/** The current values of all rules except `source_silent`, of one tenant or, with null, of all. */
export async function readValues(db: Db, tenantId: number | null): Promise<Reading[]> {
  return [
    ...(await deadLetterReadings(db, tenantId)),
    ...(await rejectedReadings(db, tenantId)),
    ...(await mrrReadings(db, tenantId)),
  ]
}

/** All tenants share the partitions, so the lag counts for each of them, whichever tenant's entries wait. */
export function lagReadings(tenantIds: number[], oldestAt: Date | null, now: Date): Reading[] {
  if (oldestAt === null) return []
  const value = Math.max(0, (now.getTime() - oldestAt.getTime()) / 1_000)
  const summary = `Processing is behind: the oldest accepted request has been waiting for ${formatDuration(value)}.`
  return tenantIds.map(tenantId => ({ tenantId, rule: 'lag', subject: '', value, summary }))
}

async function deadLetterReadings(db: Db, tenantId: number | null): Promise<Reading[]> {
  return (await countOpenDeadLetters(db, tenantId)).map(({ count, ...tenant }) => ({
    ...{ ...tenant, rule: 'dead_letters', subject: '', value: count },
    summary: count === 1 ? '1 dead letter needs attention.' : `${count} dead letters need attention.`,
  }))
}

async function rejectedReadings(db: Db, tenantId: number | null): Promise<Reading[]> {
  const rows = await countRejectedInLastHour(db, tenantId)
  return rows.map(({ refused, taken, ...tenant }) => ({
    ...{ ...tenant, rule: 'refused_share', subject: '' },
    value: refused < MIN_REJECTED ? 0 : refused / (refused + taken),
    summary: `${refused} webhook requests were rejected in the last hour; ${taken} events were accepted.`,
  }))
}

async function mrrReadings(db: Db, tenantId: number | null): Promise<Reading[]> {
  return (await readWeeklyMrr(db, tenantId)).map(({ currency, before, now, ...tenant }) => {
    const value = Math.max(0, (before - now) / before)
    const summary = `MRR in ${currency} is ${formatPercent(value)} lower than seven days ago.`
    return { ...tenant, rule: 'mrr_drop', subject: currency, value, summary }
  })
}

export function silenceReading(source: { sourceId: string; tenantId: number; name: string; rhythm: Rhythm }): Reading {
  const { sourceId, tenantId, name, rhythm } = source
  const { times, usualS } = measureSilence(rhythm)
  const summary = `Source ${name} (${sourceId}) has received nothing for ${formatDuration(rhythm.quietS)}. In the previous week, no gap between its events was longer than ${formatDuration(usualS)}.`
  return { tenantId, rule: 'source_silent', subject: sourceId, value: times, summary }
}

function formatDuration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`
}

function formatPercent(share: number): string {
  return `${Math.round(share * 1_000) / 10}%`
}
