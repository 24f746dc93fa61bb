import type pg from 'pg'
import { lagReadings, readValues, silenceReading } from '../admin/alert-values.ts'
import {
  nextAlertState,
  type Reading,
  type Rule,
  type Thresholds,
  updateRhythm,
  withDefaultThresholds,
} from '../domain/alerts/rules.ts'
import { hashToId, newEntryId } from '../domain/ids.ts'
import { DAY_MS, toDay } from '../domain/time.ts'
import { type Log, oldestUnread } from '../log/log.ts'
import { enqueueMessages } from '../pipeline/deliveries/notify.ts'
import { inTransaction } from '../postgres/database.ts'
import { LOCKS, tryLock } from '../postgres/locks.ts'
import {
  type Alert,
  beginEvaluation,
  deleteAlerts,
  deleteAlertsBefore,
  endEvaluation,
  listSourceRhythms,
  listTenantThresholds,
  openAlerts,
  saveAlerts,
  saveRhythms,
} from '../store/alerts/alerts.ts'
import { listSubscribed } from '../store/destinations/destinations.ts'
import { alertText } from '../store/export/row-texts.ts'
import type { Job } from './jobs.ts'

const EVERY_S = 60
// After a pause of all nodes or a clock change, at most this much counts as time in which sources were watched.
const LONGEST_WATCHED_S = 2 * EVERY_S
const KEPT_MS = 90 * DAY_MS

type Options = { pool: pg.Pool; log: Pick<Log, 'lag'>; everyS?: number }

/** Evaluates the alert rules once a minute, on one node at a time. */
export function alertJob(options: Options): Job {
  return { name: 'alerts', everyMs: EVERY_S * 1_000, run: () => evaluateAlerts(options) }
}

export async function evaluateAlerts({ pool, log, everyS = EVERY_S }: Options): Promise<void> {
  const oldestAt = await oldestUnread(log)
  await inTransaction(pool, async client => {
    if (!(await tryLock(client, LOCKS.alerts))) return
    const evaluation = await beginEvaluation(client, everyS)
    if (evaluation === null) return
    const { now } = evaluation
    const elapsedS = Math.min(evaluation.elapsedS, LONGEST_WATCHED_S)
    const tenants = await listTenantThresholds(client)
    const thresholds = new Map(tenants.map(({ tenantId, own }) => [tenantId, withDefaultThresholds(own)]))
    const readings = [
      ...lagReadings([...thresholds.keys()], oldestAt, now),
      ...(await readValues(client, null)),
      ...(await silenceReadings(client, { day: toDay(now), elapsedS })),
    ]
    const names = new Map(tenants.map(({ tenantId, name }) => [tenantId, name]))
    await updateAlerts(client, { now, readings, thresholds, names })
    await deleteAlertsBefore(client, new Date(now.getTime() - KEPT_MS))
    await endEvaluation(client)
  })
}

async function silenceReadings(
  client: pg.PoolClient,
  { day, elapsedS }: { day: string; elapsedS: number },
): Promise<Reading[]> {
  const sources = (await listSourceRhythms(client, null)).flatMap(({ lastAt, rhythm, isNews, ...source }) =>
    lastAt === null ? [] : [{ ...source, lastAt, rhythm: updateRhythm(rhythm, isNews, day, elapsedS) }],
  )
  await saveRhythms(client, sources)
  return sources.map(silenceReading)
}

type Evaluated = {
  now: Date
  readings: Reading[]
  thresholds: Map<number, Thresholds>
  /** Of the tenants. */
  names: Map<number, string>
}

/** Raises, keeps and resolves alerts, and notifies destinations of the changes. */
async function updateAlerts(client: pg.PoolClient, evaluated: Evaluated): Promise<void> {
  const { now, readings, thresholds, names } = evaluated
  const open = new Map((await openAlerts(client)).map(alert => [alertKey(alert), alert]))
  // An alert without a reading counts as 0: its source or currency no longer exists.
  const measured = new Set(readings.map(alertKey))
  const gone = [...open.values()].filter(alert => !measured.has(alertKey(alert)))
  const changed: Alert[] = []
  const notified: Alert[] = []
  const ended: string[] = []
  for (const reading of [...readings, ...gone.map(alert => ({ ...alert, value: 0 }))]) {
    const { tenantId, rule } = reading
    const before = open.get(alertKey(reading)) ?? null
    const threshold = thresholds.get(tenantId)?.[rule] ?? null
    const openAlert = before?.state === 'resolved' ? null : (before as OpenAlert | null)
    const next = nextAlertState(openAlert, reading.value, threshold)
    if (next === null) {
      if (before) ended.push(before.id)
      continue
    }
    const alert = toAlert(before, reading, { ...next, threshold: threshold ?? before!.threshold }, now)
    changed.push(alert)
    if (next.state !== (before?.state ?? 'pending')) notified.push(alert)
  }
  await saveAlerts(client, changed)
  await deleteAlerts(client, ended)
  await notifyDestinations(client, notified, { at: now, names })
}

type OpenAlert = Alert & { state: 'pending' | 'raised' }

function toAlert(
  before: Alert | null,
  reading: Omit<Reading, 'rule'> & { rule: Rule },
  next: Pick<Alert, 'state' | 'streak' | 'threshold'>,
  now: Date,
): Alert {
  const { tenantId, rule, subject, value, summary } = reading
  return {
    ...{ tenantId, rule, subject, value, ...next },
    id: before?.id ?? newEntryId(now.getTime()),
    // a resolved alert keeps the summary of the problem
    summary: next.state === 'resolved' && before ? before.summary : summary,
    beganAt: before?.beganAt ?? now,
    raisedAt: before?.raisedAt ?? (next.state === 'raised' ? now : null),
    resolvedAt: next.state === 'resolved' ? now : null,
  }
}

async function notifyDestinations(
  client: pg.PoolClient,
  alerts: Alert[],
  { at, names }: { at: Date; names: Map<number, string> },
): Promise<void> {
  if (alerts.length === 0) return
  const listeners = await listSubscribed(client, 'alerts')
  const ofTenant = Map.groupBy(listeners, ({ tenantId }) => tenantId)
  const wanted = alerts.filter(({ tenantId }) => ofTenant.has(tenantId))
  await enqueueMessages(
    { client },
    { ofTenant },
    wanted.map(alert => ({
      ...{ tenantId: alert.tenantId, at, what: 'alerts', object: `alert/${alert.id}` },
      id: hashToId(JSON.stringify(['alert', alert.id, alert.state])),
      type: `alert.${alert.state}`,
      rule: alert.rule,
      data: alertText(alert, names.get(alert.tenantId) ?? ''),
    })),
  )
}

function alertKey({ tenantId, rule, subject }: Pick<Reading, 'tenantId' | 'rule' | 'subject'>): string {
  return `${tenantId} ${rule} ${subject}`
}
