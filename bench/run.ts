import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { backgroundCores } from './cpu.ts'
import { hasWrk } from './load.ts'
import { type Summary, summarise } from './profile.ts'
import type { Bar, Scenario } from './scenario.ts'
import { batch } from './scenarios/batch.ts'
import { drain } from './scenarios/drain.ts'
import { engines } from './scenarios/engines.ts'
import { eventsList } from './scenarios/events-list.ts'
import { exportRows } from './scenarios/export.ts'
import { importRows } from './scenarios/import.ts'
import { inbound, inboundFlood } from './scenarios/inbound.ts'
import { memory } from './scenarios/memory.ts'
import { mixed } from './scenarios/mixed.ts'
import { recordsRead } from './scenarios/records-read.ts'
import { recordsWrite } from './scenarios/records-write.ts'
import { reports, reportsMillion } from './scenarios/reports.ts'
import { start } from './scenarios/start.ts'
import { track } from './scenarios/track.ts'

const scenarios: Record<string, Scenario> = {
  track,
  batch,
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
  mixed,
  drain,
  start,
  memory,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '8' },
    connections: { type: 'string', default: '64' },
    profile: { type: 'boolean', default: false },
  },
})

const unknown = positionals.filter(name => !(name in scenarios))
if (positionals.length === 0 || unknown.length > 0) {
  console.error(`Usage: npm run bench -- NAME... [--seconds 8] [--connections 64] [--profile]
NAME: ${Object.keys(scenarios).join(', ')}`)
  process.exit(1)
}

let allHeld = true
for (const name of positionals) allHeld = (await run(name)) && allHeld
process.exit(allHeld ? 0 : 1)

async function run(name: string): Promise<boolean> {
  const profileTo = values.profile ? mkdtempSync(join(tmpdir(), 'kontor-profile-')) : undefined
  const noise = await backgroundCores()
  const { facts, bars } = await scenarios[name]!({
    seconds: Number(values.seconds),
    connections: Number(values.connections),
    profileTo,
  })
  const result = {
    scenario: name,
    at: new Date().toISOString(),
    machine: { cores: cpus().length, cpu: cpus()[0]?.model, node: process.version },
    generator: hasWrk() ? 'wrk' : 'autocannon',
    coresBusyBefore: noise,
    bars: bars.map(bar => ({ ...bar, held: isHeld(bar) })),
    facts,
    ...(profileTo && { profile: summarise(profileTo) }),
  }
  const directory = join(import.meta.dirname, 'results')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`)
  console.log(`\n${name} (${result.generator}, ${noise?.toFixed(2) ?? '?'} cores busy before)`)
  for (const bar of bars) console.log(`  ${isHeld(bar) ? 'held  ' : 'MISSED'} ${inWords(bar)}`)
  console.log(JSON.stringify(facts, null, 1))
  if (result.profile) show(result.profile)
  return bars.every(isHeld)
}

function show({ functions, parts, statements }: Summary): void {
  for (const [name, percent] of [...functions, ...parts])
    console.log(`${String(percent).padStart(5)} %  ${name}`)
  console.table(statements)
}

function isHeld({ value, atLeast, atMost }: Bar): boolean {
  return (atLeast === undefined || value >= atLeast) && (atMost === undefined || value <= atMost)
}

function inWords({ what, value, atLeast, atMost }: Bar): string {
  const bar = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`
  return `${what}: ${Number(value.toPrecision(4))} (${bar})`
}
