import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { backgroundCores, stolenSeconds } from './cpu.ts'
import { hasWrk } from './load.ts'
import { median } from './measure.ts'
import { PLAN_USAGE, printPlan } from './plan.ts'
import { type Summary, summarize } from './profile.ts'
import { writeReport } from './report.ts'
import { movesSince, type Release, type Result, worseBy } from './result.ts'
import type { Bar, Scenario } from './scenario.ts'
import { batch } from './scenarios/batch.ts'
import { deliveries } from './scenarios/deliveries.ts'
import { drain } from './scenarios/drain.ts'
import { engines } from './scenarios/engines.ts'
import { eventsList } from './scenarios/events-list.ts'
import { exportRows } from './scenarios/export.ts'
import { growth } from './scenarios/growth.ts'
import { hotKey } from './scenarios/hot-key.ts'
import { importRows } from './scenarios/import.ts'
import { inbound, inboundFlood } from './scenarios/inbound.ts'
import { memory } from './scenarios/memory.ts'
import { mixed } from './scenarios/mixed.ts'
import { neighbors } from './scenarios/neighbors.ts'
import { recordsRead } from './scenarios/records-read.ts'
import { recordsWrite } from './scenarios/records-write.ts'
import { reports, reportsMillion } from './scenarios/reports.ts'
import { stages } from './scenarios/stages.ts'
import { start } from './scenarios/start.ts'
import { track } from './scenarios/track.ts'

const scenarios: Record<string, Scenario> = {
  track,
  batch,
  stages,
  engines,
  inbound,
  'inbound-flood': inboundFlood,
  'records-write': recordsWrite,
  'records-read': recordsRead,
  'events-list': eventsList,
  reports,
  'reports-million': reportsMillion,
  import: importRows,
  export: exportRows,
  deliveries,
  mixed,
  neighbors,
  'hot-key': hotKey,
  drain,
  start,
  memory,
  growth,
}
/** They take most of an hour, so they run only if they are selected by name. */
const BY_NAME_ONLY = ['reports-million', 'growth']

const root = join(import.meta.dirname, '..')
const directory = join(import.meta.dirname, 'results')
const latest = join(directory, 'latest.json')
const baseline = join(import.meta.dirname, 'baseline.json')
const history = join(import.meta.dirname, 'history.json')

const { values, positionals } = readWords()
/** More than this makes numbers meaningless. A busy machine gets half a minute to become quiet. */
const QUIET_CORES = 0.05
const QUIET_TRIES = 30
const RUNS = Number(values.runs ?? (values.quick ? 1 : 3))
const MAX_TRIES = values.quick ? RUNS : 2 * RUNS
const unknown = positionals.filter(name => !(name in scenarios) && name !== 'plan')
if (unknown.length > 0) endWith(`There is no ${unknown.join(', ')}.`)

function readWords() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        seconds: { type: 'string', default: '8' },
        connections: { type: 'string', default: '64' },
        profile: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        runs: { type: 'string' },
        noisy: { type: 'boolean', default: false },
        'save-baseline': { type: 'boolean', default: false },
        events: { type: 'string' },
        retention: { type: 'string' },
        tenants: { type: 'string' },
        single: { type: 'string' },
        average: { type: 'string' },
      },
    })
  } catch (error) {
    return endWith((error as Error).message)
  }
}

function endWith(words: string): never {
  console.error(`${words}
Usage: npm run bench [-- NAME...] [--seconds 8] [--runs 3] [--quick] [--connections 64] [--profile] [--noisy] [--save-baseline]
       ${PLAN_USAGE}
NAME: ${Object.keys(scenarios).join(', ')}
Each scenario runs three times (--quick: once); the result is the median of each figure.
Without a name, runs all scenarios except ${BY_NAME_ONLY.join(', ')}, rewrites docs/performance.md and lists changes since bench/baseline.json.
Numbers mean something only on a quiet machine: if other processes use more than 5% of a core, nothing runs.
With --noisy it runs anyway, but publishes nothing.`)
  return process.exit(2)
}

if (positionals[0] === 'plan') {
  process.exitCode = printPlan(readResults(latest) ?? readResults(baseline) ?? [], values) ? 0 : 2
} else {
  process.exit((await runAll(positionals)) ? 0 : 1)
}

async function runAll(names: string[]): Promise<boolean> {
  const isWhole = names.length === 0
  const chosen = isWhole ? Object.keys(scenarios).filter(name => !BY_NAME_ONLY.includes(name)) : names
  const results: Result[] = []
  mkdirSync(directory, { recursive: true })
  for (const name of chosen) {
    const result = await run(name)
    results.push(result)
    save(join(directory, `${name}.json`), result)
  }
  const before = readComparable(results)
  printChanges(before ?? [], results)
  if (isWhole && !values.noisy) {
    save(latest, results)
    save(history, addRelease(results))
    const long = BY_NAME_ONLY.flatMap(name => readResult(join(directory, `${name}.json`)) ?? [])
    writeReport({ results: [...results, ...long], baseline: before, releases: readReleases(), root })
    console.log('\nWrote bench/results/latest.json, bench/history.json and docs/performance.md.')
  }
  if (values['save-baseline'] && !values.noisy)
    save(
      baseline,
      results.map(({ facts, ...result }) => ({ ...result, facts: costsOnly(facts) })),
    )
  return results.every(({ bars, failed }) => !failed && bars.every(bar => bar.held))
}

async function run(name: string): Promise<Result> {
  const profileTo = values.profile ? mkdtempSync(join(tmpdir(), 'kontor-profile-')) : undefined
  const noise = await untilQuiet()
  const about = {
    scenario: name,
    at: new Date().toISOString(),
    machine: { cores: cpus().length, cpu: cpus()[0]?.model, node: process.version },
    generator: hasWrk() ? ('wrk' as const) : ('autocannon' as const),
    coresBusyBefore: noise,
  }
  console.log(`\n${name} (${about.generator}, ${noise?.toFixed(2) ?? '?'} cores busy before the start)`)
  try {
    const { runs, coresStolen } = await repeat(name, profileTo)
    const { facts, bars } = medianRun(runs)
    console.log(`  (the host took ${coresStolen.toFixed(2)} cores)`)
    for (const bar of bars) console.log(`  ${bar.held ? 'met   ' : 'MISSED'} ${inWords(bar)}`)
    // The report shows the results of a complete run.
    if (positionals.length > 0) console.log(JSON.stringify(facts, null, 1))
    const profile = profileTo && summarize(profileTo)
    if (profile) show(profile)
    return { ...about, coresStolen, bars, facts, ...(profile && { profile }) }
  } catch (error) {
    // The other scenarios still run.
    console.error(error)
    return { ...about, bars: [], facts: {}, failed: (error as Error).message }
  }
}

type Run = Awaited<ReturnType<Scenario>>

/**
 * Runs a scenario RUNS times. On a virtual machine, the host may give a processor to others in the middle of a run: such a
 * run is repeated, and the runs with the least interference count.
 */
async function repeat(name: string, profileTo: string | undefined): Promise<{ runs: Run[]; coresStolen: number }> {
  const tried: { run: Run; coresStolen: number }[] = []
  const isQuiet = ({ coresStolen }: { coresStolen: number }) => coresStolen <= QUIET_CORES
  while (tried.filter(isQuiet).length < RUNS && tried.length < MAX_TRIES) {
    const before = { stolenS: stolenSeconds(), at: performance.now() }
    const run = await scenarios[name]!({
      seconds: values.quick ? 3 : Number(values.seconds),
      connections: Number(values.connections),
      profileTo,
    })
    const elapsedS = (performance.now() - before.at) / 1000
    const coresStolen = before.stolenS === null ? 0 : (stolenSeconds()! - before.stolenS) / elapsedS
    tried.push({ run, coresStolen })
  }
  const best = tried.toSorted((a, b) => a.coresStolen - b.coresStolen).slice(0, RUNS)
  return { runs: best.map(({ run }) => run), coresStolen: best.at(-1)!.coresStolen }
}

/** Waits until other processes are quiet, and ends the run if they are not within half a minute. */
async function untilQuiet(): Promise<number | null> {
  for (let tries = 1; ; tries++) {
    const noise = await backgroundCores()
    if (noise === null || noise <= QUIET_CORES || values.noisy) return noise
    if (tries === QUIET_TRIES)
      endWith(`Other processes use ${noise.toFixed(2)} cores. End them, or measure without publishing: --noisy.`)
  }
}

/** Each bar has its median and its spread. The facts are those of the run whose first bar is the median. */
function medianRun(runs: Run[]): Pick<Result, 'facts' | 'bars'> {
  const bars = runs[0]!.bars.map((bar, index) => {
    const each = runs.map(({ bars }) => bars[index]!.value)
    const middle = { ...bar, value: median(each) }
    return { ...middle, held: isHeld(middle), spread: [Math.min(...each), Math.max(...each)] as [number, number] }
  })
  const typical = runs.find(({ bars: [first] }) => first?.value === bars[0]?.value) ?? runs[0]!
  return { facts: typical.facts, bars }
}

/** The stored releases, with this run as the result of the current version on this kind of machine. */
function addRelease(results: Result[]): Release[] {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const { at, machine } = results[0]!
  const figures = Object.fromEntries(
    results.flatMap(({ scenario, bars }) => bars.slice(0, 1).map(bar => [`${scenario}: ${bar.what}`, bar.value])),
  )
  const release = { version, at, machine: `${machine.cores} cores, ${machine.cpu?.trim()}`, figures }
  const isOther = (other: Release) => other.version !== version || other.machine !== release.machine
  return [...readReleases().filter(isOther), release]
}

function readReleases(): Release[] {
  return existsSync(history) ? (JSON.parse(readFileSync(history, 'utf8')) as Release[]) : []
}

/** The stored run, if it is of the same kind of machine. */
function readComparable(results: Result[]): Result[] | null {
  const before = readResults(baseline)
  return before?.[0]?.machine.cpu === results[0]!.machine.cpu ? before : null
}

function printChanges(before: Result[], results: Result[]): void {
  const moves = movesSince(before, results)
  if (before.length === 0 || moves.length === 0) return
  console.log('\nChanges since bench/baseline.json:')
  for (const move of moves) {
    const { scenario, what, value, before: was, change } = move
    const percent = `${change > 0 ? '+' : ''}${Math.round(change * 100)}%`
    console.log(
      `  ${worseBy(move) > 0 ? 'worse ' : 'better'} ${percent.padStart(7)}  ${scenario}: ${what}: ${short(was)} → ${short(value)}`,
    )
  }
}

function show({ threads, statements }: Summary): void {
  for (const { thread, functions, parts } of threads) {
    console.log(`\nThread ${thread}, percent of its busy time`)
    for (const [name, percent] of [...functions, ...parts]) console.log(`${String(percent).padStart(5)}%  ${name}`)
  }
  console.table(statements)
}

function isHeld({ value, atLeast, atMost }: Bar): boolean {
  return (atLeast === undefined || value >= atLeast) && (atMost === undefined || value <= atMost)
}

function inWords({ what, value, atLeast, atMost, spread }: Result['bars'][number]): string {
  const bar = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`
  const range = spread && spread[0] !== spread[1] ? `, ${short(spread[0])} to ${short(spread[1])}` : ''
  return `${what}: ${short(value)}${range} (${bar})`
}

function short(value: number): number {
  return Number(value.toPrecision(4))
}

/** The stored run contains the figures for comparisons and capacity plans. */
function costsOnly(facts: unknown): Record<string, unknown> {
  const kept = Object.entries(facts as Record<string, unknown>).flatMap(([key, value]): [string, unknown][] => {
    if (typeof value === 'number' || key === 'kept') return [[key, value]]
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
    const inside = costsOnly(value)
    return Object.keys(inside).length > 0 ? [[key, inside]] : []
  })
  return Object.fromEntries(kept)
}

function readResults(path: string): Result[] | null {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Result[]) : null
}

/** The last result of a scenario that runs only by name, if the machine was quiet. */
function readResult(path: string): Result | null {
  const result = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Result) : null
  return result && (result.coresBusyBefore ?? 0) <= QUIET_CORES ? result : null
}

function save(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}
