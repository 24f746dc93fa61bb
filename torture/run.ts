import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Conditions, type Deployment, deploy, type Mode } from './deployment/deployment.ts'
import { startAll } from './deployment/process.ts'
import { type Admin, adminAt, adminKeyIn, openShop, type Shop } from './deployment/shops.ts'
import { setClock } from './faults/clock.ts'
import { type Fault, heal, type Strike, seconds } from './faults/fault.ts'
import { type Ledger, openLedger, readLedger } from './ledger.ts'
import { watchMemory } from './memory.ts'
import { type Random, randomFrom } from './random.ts'
import type { Problem } from './reconcile/problems.ts'
import { reconcile } from './reconcile/reconcile.ts'
import { clockTime, faultTable, problemList, table, totals } from './report.ts'
import { startTraffic, type Traffic } from './traffic/traffic.ts'

const TENANTS = 3
const WARM_UP_MS = 2_000
/** Probability that a second fault joins the first. */
const JOINED = 0.3

export type RunOptions = {
  mode: Mode
  seed: string
  /** Time from the start after which no further fault is injected. At least one is injected. Reconciliation follows. */
  durationMs: number
  faults: readonly Fault[]
  /** Factor for pauses and durations; smaller for a quick run. */
  scale: number
  /** Factor for the load. */
  load: number
  /**
   * How long recovery may take after a fault, and the remaining work after the load. Includes recovery of PostgreSQL, retries with
   * backoff, and a busy machine.
   */
  patienceMs: number
  /** Maximum resident memory of one process. */
  memoryMb: number
  hasNats: boolean
  /** Number of HTTP processes in a fleet. */
  httpNodes: number
  /** Inject each fault once in the given order, as far as time allows, instead of randomly. */
  onceEach?: boolean
  print: (words: string) => void
}

type RunResult = {
  ok: boolean
  problems: Problem[]
  directory: string
  acknowledged: number
  struck: number
}

/** Runs one installation under load and faults, and reconciles the result. */
export async function run(options: RunOptions): Promise<RunResult> {
  const { mode, seed, print } = options
  const deadline = Date.now() + options.durationMs
  const directory = await mkdtemp(join(tmpdir(), 'kontor-torture-'))
  await chmod(directory, 0o711)
  print(`\n${mode}, seed ${seed}, in ${directory}`)
  const ledger = openLedger(join(directory, 'ledger.ndjson'))
  const random = randomFrom(`${seed}/${mode}`)
  const faults = options.faults.filter(
    ({ modes, needs }) => modes.includes(mode) && (needs !== 'nats' || options.hasNats),
  )
  const deployment = await deploy({
    mode,
    directory,
    conditions: collectConditions(faults),
    random: random.fork('network'),
    hasNats: options.hasNats,
    httpNodes: options.httpNodes,
    say: print,
    onDeath: words => ledger.violation(words),
  })
  let result: RunResult | null = null
  try {
    const possible = faults.filter(({ needs }) => needs !== 'disk' || deployment.disk)
    result = await tortured({ options, deployment, ledger, random, faults: possible, directory, deadline })
  } finally {
    await heal(deployment, setClock).catch(() => {})
    await deployment.close()
    if (result?.ok) {
      await deployment.disk?.unmount()
      await rm(directory, { recursive: true, force: true })
    } else
      print(`Everything is kept in ${directory}${deployment.disk ? ` (a mounted disk: umount ${directory}/disk)` : ''}`)
  }
  return result
}

function collectConditions(faults: readonly Fault[]): Conditions {
  const conditions: Conditions = { env: {}, postgres: {}, clocks: false, disk: false, standby: false }
  for (const fault of faults) fault.prepare?.(conditions)
  return conditions
}

function eventsKeptMs({ env }: Conditions): number {
  const days = /^(\d+)d$/.exec(env.KONTOR_EVENTS_RETENTION ?? '')?.[1]
  return days ? Number(days) * 86_400_000 : Infinity
}

type Parts = {
  options: RunOptions
  deployment: Deployment
  ledger: Ledger
  random: Random
  faults: readonly Fault[]
  directory: string
  deadline: number
}

async function tortured(parts: Parts): Promise<RunResult> {
  const { options, deployment, ledger, random } = parts
  const { shops, admin } = await openShops(deployment)
  await startAll(deployment.processes)
  const memory = watchMemory(deployment.processes)
  const traffic = startTraffic({
    shops,
    ledger,
    random: random.fork('traffic'),
    urls: () => listUrls(deployment),
    load: options.load,
    eventsKeptMs: eventsKeptMs(deployment.conditions),
    patienceMs: options.patienceMs,
  })
  try {
    await sleep(WARM_UP_MS)
    await strikeAll(parts, traffic)
  } finally {
    await traffic.stop()
    memory.stop()
  }
  return checkResult(parts, { shops, admin, peakMb: memory.peakMb })
}

const listUrls = ({ processes }: Deployment) => processes.flatMap(({ url }) => url ?? [])

async function openShops({ first }: Deployment): Promise<{ shops: Shop[]; admin: Admin }> {
  await first.start()
  const admin = adminAt(first.url!, await adminKeyIn(first.logFile))
  const shops: Shop[] = []
  for (let i = 1; i <= TENANTS; i++) shops.push(await openShop(admin, `shop-${i}`))
  return { shops, admin }
}

/** Injects one fault at a time and waits for recovery. The seed determines the order. */
async function strikeAll(parts: Parts, traffic: Traffic): Promise<void> {
  const { options, random, faults, deadline } = parts
  const pauses = random.fork('pauses')
  const order = random.fork('order')
  let bag: Fault[] = []
  for (let number = 1; number === 1 || Date.now() < deadline; number++) {
    if (bag.length === 0) {
      if (options.onceEach && number > 1) return
      bag = options.onceEach ? [...faults] : order.shuffled(faults)
      options.print(`next: ${bag.map(({ name }) => name).join(', ')}`)
    }
    const struck = [bag.shift()!]
    const others = faults.filter(fault => fault.joins && fault !== struck[0])
    if (!options.onceEach && others.length > 0 && order.chance(JOINED)) struck.push(order.pick(others))
    if (!(await strikeTogether(parts, traffic, struck, random.fork(`fault-${number}`)))) return
    await sleep(pauses.between(500, 4_000) * options.scale)
  }
  if (options.onceEach && bag.length > 0)
    options.print(`Skipped for lack of time: ${bag.map(({ name }) => name).join(', ')}`)
}

/** Returns false if the service did not recover; more faults would give no new information. */
async function strikeTogether(parts: Parts, traffic: Traffic, faults: Fault[], random: Random): Promise<boolean> {
  const { options, deployment, ledger } = parts
  const name = faults.map(fault => fault.name).join(' + ')
  const from = Date.now()
  options.print(`${clockTime(from)} ${name}`)
  const violation = (words: string) => ledger.violation(`${name}: ${words}`)
  await Promise.all(
    faults.map(async (fault, i) => {
      const strike = createStrike(parts, traffic, random.fork(fault.name), violation)
      if (i > 0) await strike.last(0, 3)
      await fault.strike(strike).catch(error => violation(`injection failed: ${error.message}`))
    }),
  )
  await heal(deployment, setClock).catch(error => violation(`cleanup failed: ${error.message}`))
  const healed = Date.now()
  const hasRecovered = await recovered(parts, traffic)
  const until = Date.now()
  ledger.fault({ name, from, until, recoveredAfterMs: hasRecovered ? until - healed : null })
  if (!hasRecovered) violation(`not recovered ${seconds(options.patienceMs)} s after the fault ended`)
  options.print(`  ${hasRecovered ? `recovered after ${seconds(until - healed)} s` : 'NOT RECOVERED'}`)
  return hasRecovered
}

function createStrike(
  { deployment, options }: Parts,
  traffic: Traffic,
  random: Random,
  violation: (words: string) => void,
): Strike {
  return {
    deployment,
    traffic,
    random,
    last: (fromSeconds, toSeconds) => sleep(random.between(fromSeconds, toSeconds) * 1_000 * options.scale),
    probe() {
      const probe = traffic.records.probe()
      return () => probe(random.pick(listUrls(deployment)))
    },
    say: options.print,
    violation,
  }
}

/** Checks that writes to all partitions are applied again, through every HTTP process. */
async function recovered({ deployment, options }: Parts, traffic: Traffic): Promise<boolean> {
  const deadline = Date.now() + options.patienceMs
  for (const url of listUrls(deployment)) {
    const probe = traffic.records.probe()
    while (!(await probe(url))) {
      if (Date.now() > deadline) return false
      await sleep(100)
    }
  }
  return true
}

async function checkResult(
  { options, deployment, ledger, directory }: Parts,
  { shops, admin, peakMb }: { shops: Shop[]; admin: Admin; peakMb: Map<string, number> },
): Promise<RunResult> {
  const { print } = options
  const content = await readLedger(ledger.path)
  const { patienceMs } = options
  const { problems, outcomes } = await reconcile({ deployment, admin, shops, ledger: content, patienceMs })
  for (const [name, mb] of peakMb)
    if (mb > options.memoryMb)
      problems.push({
        kind: 'memory',
        words: `${name} used ${mb} MB; the limit is ${options.memoryMb} MB`,
        at: null,
      })
  print(`\n${faultTable(content.faults, outcomes, problems)}`)
  print(`\n${table([['process', 'peak memory'], ...[...peakMb].map(([name, mb]) => [name, `${mb} MB`])])}`)
  const acknowledged = outcomes.filter(({ acknowledgedAt }) => acknowledgedAt !== null).length
  print(`\n${totals(content.faults, outcomes, problems)}`)
  if (problems.length > 0) print(`\nFAILED with seed ${options.seed} (${options.mode})\n${problemList(problems)}`)
  else print(`\nPASSED: all ${acknowledged} acknowledged items are stored exactly once.`)
  return { ok: problems.length === 0, problems, directory, acknowledged, struck: content.faults.length }
}
