import type pg from 'pg'
import {
  heard,
  nextStanding,
  type Reading,
  type Rule,
  silence,
  type Thresholds,
  thresholdsOf,
} from '../domain/alerts/rules.ts'
import { idOfText, newEntryId } from '../domain/ids.ts'
import { DAY_MS, dayOf } from '../domain/time.ts'
import type { Log } from '../log/log.ts'
import { tell } from '../pipeline/deliveries/audience.ts'
import { inTransaction } from '../postgres/database.ts'
import { LOCKS, tryLock } from '../postgres/locks.ts'
import {
  type Alert,
  beginEvaluation,
  deleteAlerts,
  endEvaluation,
  forgetAlertsBefore,
  openAlerts,
  ownThresholds,
  saveAlerts,
} from '../store/alerts/alerts.ts'
import {
  mrrOfWeek,
  openLetters,
  refusedInLastHour,
  saveRhythms,
  sourceRhythms,
} from '../store/alerts/readings.ts'
import { listWanted } from '../store/destinations/destinations.ts'
import { alertText } from '../store/export/row-texts.ts'
import type { Job } from './jobs.ts'

const EVERY_S = 60
// Of a pause of nodes, or of a clock that was set, no more than this counts as having watched.
const LONGEST_WATCHED_S = 2 * EVERY_S
const KEPT_MS = 90 * DAY_MS
const FEWEST_REFUSED = 10

type Options = { pool: pg.Pool; log: Pick<Log, 'lag'>; everyS?: number }

/** Looks once a minute, on one node of all, whether something is worth a warning. */
export function alerts(options: Options): Job {
  return { name: 'alerts', everyMs: EVERY_S * 1_000, run: () => evaluateAlerts(options) }
}

export async function evaluateAlerts({ pool, log, everyS = EVERY_S }: Options): Promise<void> {
  const oldestAt = await oldestWaiting(log)
  await inTransaction(pool, async client => {
    if (!(await tryLock(client, LOCKS.alerts))) return
    const turn = await beginEvaluation(client, everyS)
    if (turn === null) return
    const { now } = turn
    const elapsedS = Math.min(turn.elapsedS, LONGEST_WATCHED_S)
    const tenants = await ownThresholds(client)
    const thresholds = new Map(tenants.map(({ tenantId, own }) => [tenantId, thresholdsOf(own)]))
    const readings = [
      ...lagReadings([...thresholds.keys()], oldestAt, now),
      ...(await letterReadings(client)),
      ...(await refusedReadings(client)),
      ...(await mrrReadings(client)),
      ...(await silenceReadings(client, { day: dayOf(now), elapsedS })),
    ]
    await settle(client, { now, readings, thresholds })
    await forgetAlertsBefore(client, new Date(now.getTime() - KEPT_MS))
    await endEvaluation(client)
  })
}

async function oldestWaiting(log: Options['log']): Promise<number | null> {
  const times = (await log.lag()).flatMap(({ oldestAt }) => oldestAt?.getTime() ?? [])
  return times.length === 0 ? null : Math.min(...times)
}

/** Everybody waits for what is not processed yet, whoever sent it. */
function lagReadings(tenantIds: number[], oldestAt: number | null, now: Date): Reading[] {
  if (oldestAt === null) return []
  const value = Math.max(0, (now.getTime() - oldestAt) / 1_000)
  const summary = `What was accepted waits to be processed, the oldest for ${lasting(value)}.`
  return tenantIds.map(tenantId => ({ tenantId, rule: 'lag', subject: '', value, summary }))
}

async function letterReadings(client: pg.PoolClient): Promise<Reading[]> {
  return (await openLetters(client)).map(({ tenantId, count }) => ({
    ...{ tenantId, rule: 'dead_letters', subject: '', value: count },
    summary:
      count === 1 ? '1 dead letter waits for a decision.' : `${count} dead letters wait for a decision.`,
  }))
}

async function refusedReadings(client: pg.PoolClient): Promise<Reading[]> {
  const rows = await refusedInLastHour(client)
  return rows.map(({ tenantId, refused, taken }) => ({
    ...{ tenantId, rule: 'refused_share', subject: '' },
    value: refused < FEWEST_REFUSED ? 0 : refused / (refused + taken),
    summary: `${refused} webhook requests were refused in the last hour, and ${taken} events taken.`,
  }))
}

async function mrrReadings(client: pg.PoolClient): Promise<Reading[]> {
  return (await mrrOfWeek(client)).map(({ tenantId, currency, before, now }) => {
    const value = Math.max(0, 1 - now / before)
    const summary = `MRR in ${currency} is ${percent(value)} below what it was seven days ago.`
    return { tenantId, rule: 'mrr_drop', subject: currency, value, summary }
  })
}

async function silenceReadings(
  client: pg.PoolClient,
  { day, elapsedS }: { day: string; elapsedS: number },
): Promise<Reading[]> {
  const sources = (await sourceRhythms(client)).flatMap(({ lastAt, rhythm, isNews, ...source }) =>
    lastAt === null ? [] : [{ ...source, lastAt, rhythm: heard(rhythm, isNews, day, elapsedS) }],
  )
  await saveRhythms(client, sources)
  return sources.map(({ sourceId, tenantId, name, rhythm }) => {
    const { times, usualS } = silence(rhythm)
    const summary = `Source ${name} (${sourceId}) has been quiet for ${lasting(rhythm.quietS)}; in the week before, never longer than ${lasting(usualS)}.`
    return { tenantId, rule: 'source_silent', subject: sourceId, value: times, summary }
  })
}

type Evaluated = { now: Date; readings: Reading[]; thresholds: Map<number, Thresholds> }

/** Raises, keeps and resolves, and tells destinations what they are to know. */
async function settle(client: pg.PoolClient, { now, readings, thresholds }: Evaluated): Promise<void> {
  const open = new Map((await openAlerts(client)).map(alert => [keyOf(alert), alert]))
  // What is not measured any more is not there.
  const measured = new Set(readings.map(keyOf))
  const gone = [...open.values()].filter(alert => !measured.has(keyOf(alert)))
  const changed: Alert[] = []
  const told: Alert[] = []
  const passed: string[] = []
  for (const reading of [...readings, ...gone.map(alert => ({ ...alert, value: 0 }))]) {
    const { tenantId, rule } = reading
    const before = open.get(keyOf(reading)) ?? null
    const threshold = thresholds.get(tenantId)?.[rule] ?? null
    const standing = before?.state === 'resolved' ? null : (before as StandingAlert | null)
    const next = nextStanding(standing, reading.value, threshold)
    if (next === null) {
      if (before) passed.push(before.id)
      continue
    }
    const alert = alertOf(before, reading, { ...next, threshold: threshold ?? before!.threshold }, now)
    changed.push(alert)
    if (next.state !== (before?.state ?? 'pending')) told.push(alert)
  }
  await saveAlerts(client, changed)
  await deleteAlerts(client, passed)
  await tellAlerts(client, told, now)
}

type StandingAlert = Alert & { state: 'pending' | 'raised' }

function alertOf(
  before: Alert | null,
  reading: Omit<Reading, 'rule'> & { rule: Rule },
  next: Pick<Alert, 'state' | 'streak' | 'threshold'>,
  now: Date,
): Alert {
  const { tenantId, rule, subject, value, summary } = reading
  return {
    ...{ tenantId, rule, subject, value, ...next },
    id: before?.id ?? newEntryId(now.getTime()),
    // of what is over, the words of when it was not
    summary: next.state === 'resolved' && before ? before.summary : summary,
    beganAt: before?.beganAt ?? now,
    raisedAt: before?.raisedAt ?? (next.state === 'raised' ? now : null),
    resolvedAt: next.state === 'resolved' ? now : null,
  }
}

async function tellAlerts(client: pg.PoolClient, told: Alert[], at: Date): Promise<void> {
  if (told.length === 0) return
  const listeners = await listWanted(client, 'alerts')
  const ofTenant = Map.groupBy(listeners, ({ tenantId }) => tenantId)
  const wanted = told.filter(({ tenantId }) => ofTenant.has(tenantId))
  await tell(
    { client },
    { ofTenant },
    wanted.map(alert => ({
      ...{ tenantId: alert.tenantId, at, what: 'alerts', object: `alert/${alert.id}` },
      id: idOfText(JSON.stringify(['alert', alert.id, alert.state])),
      type: `alert.${alert.state}`,
      data: alertText(alert),
    })),
  )
}

function keyOf({ tenantId, rule, subject }: Pick<Reading, 'tenantId' | 'rule' | 'subject'>): string {
  return `${tenantId} ${rule} ${subject}`
}

function lasting(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`
}

function percent(share: number): string {
  return `${Math.round(share * 1_000) / 10} %`
}
