import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { costsIn, formatPlan, type PlanQuestion, planFor, ratePossible } from './plan.ts'
import { type Bars, barChart, stackedChart } from './plots.ts'
import { listFigures, movesSince, type Release, type Result, worseBy } from './result.ts'
import type { Bar } from './scenario.ts'
import type { GrowthFacts } from './scenarios/growth.ts'
import type { KindCost, StageFacts } from './scenarios/stages.ts'

/** Writes docs/performance.md with its plots from a complete run. */
export function writeReport({
  results,
  baseline,
  releases,
  root,
}: {
  results: Result[]
  baseline: Result[] | null
  releases: Release[]
  root: string
}): void {
  const plots = join(root, 'docs/performance')
  mkdirSync(plots, { recursive: true })
  const costs = costsIn(results)
  writeFileSync(join(plots, 'rates.svg'), barChart('Operations per second on this machine', ratesIn(results)))
  if (costs) writeFileSync(join(plots, 'costs.svg'), stackedChart('CPU µs per operation, by stage', listStages(costs)))
  writeFileSync(join(root, 'docs/performance.md'), renderPage({ results, baseline, releases, costs }))
  if (costs) writePlans(join(root, 'docs/scale.md'), costs)
  if (costs) replaceBlock(join(root, 'docs/operations.md'), 'million events', renderMillion(costs))
}

const PLANS: PlanQuestion[] = [
  { eventsPerSecond: 1_000, retentionDays: 90, tenants: 5, singleShare: 0.2, averageShare: 0.3 },
  { eventsPerSecond: 50_000, retentionDays: 30, tenants: 200, singleShare: 0.2, averageShare: 0.3 },
  { eventsPerSecond: 1_000_000, retentionDays: 14, tenants: 5_000, singleShare: 0.1, averageShare: 0.3 },
]

/** The example plans of the guide, from the measured costs. */
function writePlans(path: string, costs: StageFacts): void {
  const plans = PLANS.map(question => `\`\`\`\n${formatPlan(question, planFor(question, costs))}\n\`\`\`\n`)
  replaceBlock(path, 'plans', plans.join('\n'))
}

/** Replaces the text between `<!-- NAME` and `<!-- /NAME -->`. */
function replaceBlock(path: string, name: string, block: string): void {
  const text = readFileSync(path, 'utf8')
  const begin = text.indexOf('\n', text.indexOf(`<!-- ${name}`)) + 1
  const end = text.indexOf(`<!-- /${name} -->`)
  writeFileSync(path, `${text.slice(0, begin)}\n${block}\n${text.slice(end)}`)
}

/** What a million events cost. Bytes per event are megabytes per million. */
function renderMillion({ single, batched }: StageFacts): string {
  const row = (what: string, of: (kind: KindCost) => number, unit: string) =>
    `| ${what} | ${rounded(of(single))} ${unit} | ${rounded(of(batched))} ${unit} |`
  const inLog = ({ kept }: KindCost) => kept.log ?? 0
  const total = ({ kept }: KindCost) => Object.values(kept).reduce((sum, bytes) => sum + bytes, 0)
  return [
    '| a million events | sent one by one | in batches of 100 |',
    '|---|--:|--:|',
    row('disk of the events, with indexes', kind => total(kind) - inLog(kind), 'MB'),
    row('disk of the log, until its retention ends', inLog, 'MB'),
    row('WAL that PostgreSQL writes', ({ accept, process }) => accept.walBytes + process.walBytes, 'MB'),
    row('CPU time of Node', ({ accept, process }) => accept.nodeUs + process.nodeUs, 's'),
    row('CPU time of PostgreSQL', ({ accept, process }) => accept.postgresUs + process.postgresUs, 's'),
    '',
  ].join('\n')
}

const rounded = (value: number) => Math.round(value).toLocaleString('en')

const RATES: Record<string, [scenario: string, pick: (facts: Facts) => number | undefined]> = {
  'single events': ['track', facts => facts.full?.perSecond],
  'events in batches of 100, processed': [
    'batch',
    facts => facts.processedEvents && facts.processedEvents / facts.accepted.doneAfterS,
  ],
  'record writes, applied': ['records-write', facts => facts.appliedPerSecond],
  'record reads': ['records-read', facts => facts.byId?.perSecond],
  'webhook events in batches of 100': ['inbound', facts => facts.batchEventsProcessedPerSecond],
  'events of a backlog, processed': ['drain', facts => facts.drainedPerSecond],
  'rows imported': ['import', facts => facts.seconds && facts.accepted / facts.seconds],
  'events exported': ['export', facts => facts.seconds && facts.rows / facts.seconds],
}

// biome-ignore lint/suspicious/noExplicitAny: each scenario has facts of its own
type Facts = Record<string, any>

function ratesIn(results: Result[]): Bars {
  return Object.entries(RATES).flatMap(([name, [scenario, pick]]) => {
    const value = pick((results.find(result => result.scenario === scenario)?.facts ?? {}) as Facts)
    return value ? [{ name, value }] : []
  })
}

function listStages({ single, batched, record }: StageFacts) {
  const kinds = { 'a single event': single, 'an event in a batch': batched, 'a record write': record }
  return Object.entries(kinds).map(([name, { accept, process }]) => ({
    name,
    parts: {
      'accept, Node': accept.nodeUs,
      'accept, PostgreSQL': accept.postgresUs,
      'process, Node': process.nodeUs,
      'process, PostgreSQL': process.postgresUs,
    },
  }))
}

type Page = { results: Result[]; baseline: Result[] | null; releases: Release[]; costs: StageFacts | null }

function renderPage({ results, baseline, releases, costs }: Page): string {
  const [first] = results
  const busy = results.map(({ coresBusyBefore }) => coresBusyBefore ?? 0)
  const stolen = results.map(({ coresStolen }) => coresStolen ?? 0)
  return `# Performance

\`npm run bench\` generated this page on ${first!.at.slice(0, 10)}: ${first!.machine.cores} cores (${first!.machine.cpu?.trim()}), Node ${first!.machine.node.slice(1)}, the embedded PostgreSQL, load from ${first!.generator} on the same machine.
Each scenario ran three times; figures are medians. Other programs used at most ${Math.max(...busy).toFixed(2)} cores before the scenarios started, and the host of the virtual machine gave at most ${Math.max(...stolen).toFixed(2)} cores to others while they ran. Rates depend on the machine. Ratios are measured within one run and are comparable between machines.
The floor is a bare server that does the least possible work for the same request.

![Operations per second](performance/rates.svg)

${costs ? costsPart(costs, results) : ''}
## Results and targets

${results.map(scenarioPart).join('\n')}
${growthPart(results)}
${movesPart(baseline, results)}
${historyPart(releases)}`
}

/** The first figure of every scenario, by release. */
function historyPart(releases: Release[]): string {
  if (releases.length === 0) return ''
  const names = [...new Set(releases.flatMap(({ figures }) => Object.keys(figures)))]
  const rows = names.map(name => {
    const cells = releases.map(({ figures }) => (figures[name] === undefined ? '–' : number(figures[name])))
    return `| ${name} | ${cells.join(' | ')} |`
  })
  const heads = releases.map(({ version, at, machine }) => `${version} (${at.slice(0, 10)}, ${machine})`)
  return `## Releases

Compare figures of the same machine only.

| | ${heads.join(' | ')} |
|---|${'--:|'.repeat(heads.length)}
${rows.join('\n')}
`
}

function costsPart(costs: StageFacts, results: Result[]): string {
  const rows: [string, KindCost][] = Object.entries({
    'a single event': costs.single,
    'an event in a batch of 100': costs.batched,
    'a record write': costs.record,
  })
  const predicted = ratePossible(costs.batched, results[0]!.machine.cores)
  const batch = results.find(({ scenario }) => scenario === 'batch')?.bars[0]?.value
  return `## Cost per event and write

![CPU by stage](performance/costs.svg)

| | accept: Node | PostgreSQL | WAL | syncs | process: Node | PostgreSQL | WAL | syncs | stored |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
${rows
  .map(([name, { accept, process, kept }]) => {
    const stage = ({ nodeUs, postgresUs, walBytes, syncs }: typeof accept) =>
      `${number(nodeUs)} µs | ${number(postgresUs)} µs | ${number(walBytes)} B | ${number(syncs)}`
    const bytes = Object.values(kept).reduce((sum, each) => sum + each, 0)
    return `| ${name} | ${stage(accept)} | ${stage(process)} | ${number(bytes)} B |`
  })
  .join('\n')}

### Where the time goes

Microseconds of CPU time per event or write. Accepting and processing are measured one after the other.

${partsTable(rows, ({ accept, process }) => ({
  ...prefixed('accept', accept.parts),
  ...prefixed('process', process.parts),
}))}

### Where the bytes go

Bytes on disk per event or write, for each table and each index. Entries of the log are deleted after their retention.

${partsTable(rows, ({ keptParts }) => keptParts)}

${batch ? `According to these costs, ${results[0]!.machine.cores} cores that do nothing else could process ${number(predicted)} events per second in batches. With the load generator on the same cores, the measured rate was ${number(batch)}.` : ''}
[Capacity planning](scale.md) computes the number of machines from these costs.

`
}

const prefixed = (stage: string, parts: Record<string, number>) =>
  Object.fromEntries(Object.entries(parts).map(([name, value]) => [`${stage}: ${name}`, value]))

/** A row for every part, the largest of an event in a batch first. */
function partsTable(kinds: [string, KindCost][], partsIn: (cost: KindCost) => Record<string, number>): string {
  const columns = kinds.map(([, cost]) => partsIn(cost))
  const names = [...new Set(columns.flatMap(Object.keys))].sort((a, b) => (columns[1]![b] ?? 0) - (columns[1]![a] ?? 0))
  const rows = names.map(
    name => `| ${name} | ${columns.map(parts => (parts[name] ? number(parts[name]) : '–')).join(' | ')} |`,
  )
  const total = columns.map(parts => number(Object.values(parts).reduce((sum, each) => sum + each, 0)))
  return `| | ${kinds.map(([name]) => name).join(' | ')} |
|---|${'--:|'.repeat(kinds.length)}
${rows.join('\n')}
| **total** | ${total.join(' | ')} |`
}

function scenarioPart({ scenario, bars, failed }: Result): string {
  if (failed) return `**${scenario}** did not run: ${failed}\n`
  const rows = bars.map(
    bar =>
      `| ${bar.what} | ${number(bar.value)} | ${formatSpread(bar)} | ${formatBar(bar)} | ${bar.held ? '✓' : 'missed'} |`,
  )
  return `**${scenario}**\n\n| | median | spread | target | |\n|---|--:|--:|--:|---|\n${rows.join('\n')}\n`
}

/** The time of each question with few and with many events. */
function growthPart(results: Result[]): string {
  const growth = results.find(({ scenario, failed }) => scenario === 'growth' && !failed)
  if (!growth) return ''
  const { small, large } = growth.facts as GrowthFacts
  const rows = Object.keys(large.idle).map(name =>
    [name, small.idle[name], large.idle[name], small.busy[name], large.busy[name]].join(' | '),
  )
  return `## Response times with ${number(small.events)} and ${number(large.events)} events

Median milliseconds, while no events arrive and while events arrive.

| | idle, few | idle, many | events arrive, few | events arrive, many |
|---|--:|--:|--:|--:|
${rows.map(row => `| ${row} |`).join('\n')}
`
}

function movesPart(baseline: Result[] | null, results: Result[]): string {
  if (baseline === null) return ''
  const known = new Set(baseline.flatMap(listFigures).map(({ scenario, what }) => `${scenario} ${what}`))
  const moves = movesSince(baseline, results)
  if (known.size === 0) return ''
  const since = `compared with the stored run of ${baseline[0]!.at.slice(0, 10)}`
  if (moves.length === 0) return `## Changes since the stored run\n\nNo change of more than 15% ${since}.\n`
  const rows = moves.map(move => {
    const { scenario, what, before, value, change } = move
    return `| ${scenario} | ${what} | ${number(before)} | ${number(value)} | ${change > 0 ? '+' : ''}${Math.round(change * 100)}% | ${worseBy(move) > 0 ? 'worse' : 'better'} |`
  })
  return `## Changes since the stored run\n\nChanges of more than 15% ${since}:\n\n| scenario | | before | now | | |\n|---|---|--:|--:|--:|---|\n${rows.join('\n')}\n`
}

function formatSpread({ spread }: Result['bars'][number]): string {
  return spread && spread[0] !== spread[1] ? `${number(spread[0])} – ${number(spread[1])}` : ''
}

function formatBar({ atLeast, atMost }: Bar): string {
  return atLeast === undefined ? `≤ ${number(atMost!)}` : `≥ ${number(atLeast)}`
}

function number(value: number): string {
  return (Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3))).toLocaleString('en')
}
