import type { Result } from './result.ts'
import type { KindCost, StageFacts } from './scenarios/stages.ts'

export type PlanQuestion = {
  eventsPerSecond: number
  retentionDays: number
  tenants: number
  /** Share of events in single requests; the others are in batches of 100. */
  singleShare: number
  /** Average rate as a share of the peak rate. The peak determines machines, the average determines disks. */
  averageShare: number
}

export type Plan = {
  /** Busy cores at that rate. */
  httpCores: number
  workerCores: number
  postgresCores: number
  httpProcesses: number
  workers: number
  partitions: number
  walMegabytesPerSecond: number
  syncsPerSecond: number
  keptGigabytesPerDay: number
  diskGigabytes: number
  /** Separate installations, each with its own PostgreSQL server. */
  installations: number
  /** The resource that limits one server. */
  limitedBy: ServerLimit
  tenantsPerInstallation: number
  /** Partitions of a log on JetStream in front of one server. Each handles a few hundred synced messages per second. */
  streamPartitions: number
}

/** The capacity of one PostgreSQL server. More needs another server. */
type ServerLimit = 'cores' | 'WAL' | 'disk' | 'connections'

// Headroom for peaks, reports and other work.
const BUSY_AT_MOST = 0.6
// Cores of a commonly available PostgreSQL server.
const SERVER_CORES = 32
// What such a server can write and replicate, and what can be backed up and restored within a day.
const SERVER_WAL_MB = 200
const SERVER_DISK_GB = 30_000
// Each is a process of PostgreSQL, which shares locks and snapshots with all others.
const SERVER_CONNECTIONS = 500
// KONTOR_POOL_SIZE and a listener. A node with workers also has connections for the workers, deliveries and scheduled jobs.
const CONNECTIONS_OF_HTTP = 13
const CONNECTIONS_OF_WORKER = 18
// One transaction at a time processes a partition. There are more partitions than workers, so that no worker waits for a slow one.
const PARTITIONS_AT_LEAST = 16
const PARTITIONS_AT_MOST = 256 // of KONTOR_LOG_PARTITIONS
const SYNCED_MESSAGES_PER_SECOND = 300
const EVENTS_PER_MESSAGE = 100
// The default of KONTOR_LOG_RETENTION. The log uses disk space in addition to permanent data.
const LOG_DAYS = 7
const PASSING_TABLES = ['log']
const HEADROOM_OF_DISK = 1.3

/** Computes the number of machines for a rate from the measured cost of one event. */
export function planFor(
  { eventsPerSecond, retentionDays, tenants, singleShare, averageShare }: PlanQuestion,
  costs: StageFacts,
): Plan {
  const mixed = (of: (kind: KindCost) => number) =>
    singleShare * of(costs.single) + (1 - singleShare) * of(costs.batched)
  const cores = (of: (kind: KindCost) => number) => (eventsPerSecond * mixed(of)) / 1e6
  const httpCores = cores(kind => kind.accept.nodeUs)
  const workerCores = cores(kind => kind.process.nodeUs)
  const postgresCores = cores(kind => kind.accept.postgresUs + kind.process.postgresUs)
  const perPartition = 1e6 / mixed(kind => kind.process.nodeUs + kind.process.postgresUs)
  const passing = mixed(kind => sumBytes(kind, name => PASSING_TABLES.includes(name)))
  const kept = mixed(kind => sumBytes(kind, name => !PASSING_TABLES.includes(name)))
  const perDay = (bytes: number) => (bytes * eventsPerSecond * averageShare * 86_400) / 1e9
  const walMegabytesPerSecond = (eventsPerSecond * mixed(kind => kind.accept.walBytes + kind.process.walBytes)) / 1e6
  const diskGigabytes = (perDay(kept) * retentionDays + perDay(passing) * LOG_DAYS) * HEADROOM_OF_DISK
  const httpProcesses = Math.max(1, Math.ceil(httpCores / BUSY_AT_MOST))
  const workers = Math.max(1, Math.ceil(workerCores / BUSY_AT_MOST))
  const needed: Record<ServerLimit, number> = {
    cores: postgresCores / (SERVER_CORES * BUSY_AT_MOST),
    WAL: walMegabytesPerSecond / SERVER_WAL_MB,
    disk: diskGigabytes / SERVER_DISK_GB,
    connections: (httpProcesses * CONNECTIONS_OF_HTTP + workers * CONNECTIONS_OF_WORKER) / SERVER_CONNECTIONS,
  }
  const [limitedBy, most] = Object.entries(needed).sort(([, a], [, b]) => b - a)[0]!
  const installations = Math.ceil(most)
  return {
    httpCores,
    workerCores,
    postgresCores,
    httpProcesses,
    workers,
    partitions: Math.min(
      PARTITIONS_AT_MOST,
      Math.max(PARTITIONS_AT_LEAST, powerOfTwo(eventsPerSecond / installations / perPartition / BUSY_AT_MOST)),
    ),
    walMegabytesPerSecond,
    syncsPerSecond: eventsPerSecond * mixed(kind => kind.accept.syncs + kind.process.syncs),
    keptGigabytesPerDay: perDay(kept),
    diskGigabytes,
    installations,
    limitedBy: limitedBy as ServerLimit,
    tenantsPerInstallation: Math.ceil(tenants / installations),
    streamPartitions: Math.min(
      PARTITIONS_AT_MOST,
      Math.max(4, powerOfTwo(eventsPerSecond / installations / EVENTS_PER_MESSAGE / SYNCED_MESSAGES_PER_SECOND)),
    ),
  }
}

/** Events per second that this number of cores can accept and process without other work. */
export function ratePossible(costs: KindCost, cores: number): number {
  const { accept, process } = costs
  return (cores * 1e6) / (accept.nodeUs + accept.postgresUs + process.nodeUs + process.postgresUs)
}

function sumBytes({ kept }: KindCost, isMeant: (table: string) => boolean): number {
  return Object.entries(kept).reduce((sum, [name, bytes]) => (isMeant(name) ? sum + bytes : sum), 0)
}

const powerOfTwo = (least: number) => 2 ** Math.ceil(Math.log2(Math.max(1, least)))

export function costsIn(results: Result[]): StageFacts | null {
  return (results.find(({ scenario, failed }) => scenario === 'stages' && !failed)?.facts as StageFacts) ?? null
}

type Words = {
  events?: string | undefined
  retention?: string | undefined
  tenants?: string | undefined
  single?: string | undefined
  average?: string | undefined
}

export const PLAN_USAGE =
  'npm run bench -- plan --events 50000 [--retention 90] [--tenants 200] [--single 0.2] [--average 0.3]'

/** Returns whether there is a plan; otherwise prints what is missing. */
export function printPlan(results: Result[], words: Words): boolean {
  const costs = costsIn(results)
  const { question, errors } = parseQuestion(words)
  if (costs === null) errors.push('No costs have been measured yet. Run `npm run bench -- stages --save-baseline`.')
  for (const error of errors) console.error(error)
  if (errors.length > 0) console.error(`Usage: ${PLAN_USAGE}`)
  if (errors.length > 0 || costs === null) return false
  console.log(formatPlan(question, planFor(question, costs)))
  return true
}

export function parseQuestion(words: Words): { question: PlanQuestion; errors: string[] } {
  const question = {
    eventsPerSecond: Number(words.events),
    retentionDays: Number(words.retention ?? 90),
    tenants: Number(words.tenants ?? 1),
    singleShare: Number(words.single ?? 0.2),
    averageShare: Number(words.average ?? 0.3),
  }
  const { eventsPerSecond, retentionDays, tenants, singleShare, averageShare } = question
  const positive = (value: number) => value > 0 && Number.isFinite(value)
  const share = (value: number) => value >= 0 && value <= 1
  const checks: [boolean, string][] = [
    [positive(eventsPerSecond), '--events must be a number above 0: events per second in the busiest hour'],
    [positive(retentionDays), '--retention must be a number of days above 0'],
    [Number.isInteger(tenants) && tenants > 0, '--tenants must be a whole number above 0'],
    [share(singleShare), '--single must be between 0 and 1: the share of events that are sent one by one'],
    [
      share(averageShare) && averageShare > 0,
      '--average must be above 0 and at most 1: the average rate as a share of the busiest hour',
    ],
  ]
  return { question, errors: checks.flatMap(([isValid, error]) => (isValid ? [] : [error])) }
}

const LIMIT_TEXTS: Record<ServerLimit, string> = {
  cores: `limited by cores: ${SERVER_CORES} per server, at most ${BUSY_AT_MOST * 100}% busy`,
  WAL: `limited by WAL: at most ${SERVER_WAL_MB} MB/s per server`,
  disk: `limited by disk: at most ${SERVER_DISK_GB.toLocaleString('en')} GB per server`,
  connections: `limited by connections: at most ${SERVER_CONNECTIONS} per server`,
}

export function formatPlan(question: PlanQuestion, plan: Plan): string {
  const { eventsPerSecond, retentionDays, tenants, singleShare, averageShare } = question
  const n = (value: number) => (value < 10 ? Number(value.toPrecision(2)) : Math.round(value)).toLocaleString('en')
  const counted = (count: number, word: string, ending = 's') => `${n(count)} ${word}${count === 1 ? '' : ending}`
  const installations = counted(plan.installations, 'installation')
  const isOne = plan.installations === 1
  const inEach = (total: number) => Math.ceil(total / plan.installations)
  const per = isOne ? '' : ' per installation'
  const why = isOne ? '' : ` (${LIMIT_TEXTS[plan.limitedBy]})`
  const diskOfEach = isOne ? '' : `, ${n(plan.diskGigabytes / plan.installations)} GB${per}`
  const lines = [
    `${n(eventsPerSecond)} events per second in the busiest hour, ${n(eventsPerSecond * averageShare)} on average, of ${counted(tenants, 'tenant')}, ${Math.round(singleShare * 100)}% sent one by one, stored for ${n(retentionDays)} days`,
    '',
    `HTTP        ${n(plan.httpCores)} cores busy in total: ${counted(inEach(plan.httpProcesses), 'process', 'es')}${per}`,
    `Workers     ${n(plan.workerCores)} cores busy in total: ${counted(inEach(plan.workers), 'worker')}${per}, KONTOR_LOG_PARTITIONS=${plan.partitions}`,
    `PostgreSQL  ${n(plan.postgresCores)} cores busy in total: ${installations}${why}, ${counted(plan.tenantsPerInstallation, 'tenant')}${isOne ? '' : ' each'}`,
    `WAL         ${n(plan.walMegabytesPerSecond)} MB/s, ${n(plan.syncsPerSecond)} syncs per second`,
    `Disk        ${n(plan.keptGigabytesPerDay)} GB per day, ${n(plan.diskGigabytes)} GB in total${diskOfEach}`,
    `JetStream   ${n(plan.streamPartitions)} partitions${per}, if the log is on JetStream`,
  ]
  // A tenant cannot span several installations, so the numbers beyond one are only theoretical.
  if (plan.installations > tenants)
    lines.push(
      '',
      `Not possible: a tenant is stored in one installation, and ${counted(tenants, 'tenant')} would need ${installations}. Shorten the retention, or use more tenants.`,
    )
  return lines.join('\n')
}
