import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Deployment, deploy } from '../deployment/deployment.ts'
import { listChildren } from '../deployment/postgres.ts'
import { adminAt, adminKeyIn, openShop, type Shop } from '../deployment/shops.ts'
import { residentMb, watchMemory } from '../memory.ts'
import { randomFrom } from '../random.ts'
import { table } from '../report.ts'
import { type FloodResult, flood, quantile } from './flood.ts'
import { SLOW_CLIENTS } from './slow-clients.ts'
import { SURFACES, type Surface } from './surfaces.ts'

const CAPACITY_MS = 4_000
const RECOVERY_MS = 5_000
/** Share of the previous capacity. The backlog of the flood is processed at the same time. */
const FULL_RATE = 0.7
const FAST_503_MS = 1_000

type OverloadOptions = {
  seconds: number
  /** multiple of the capacity */
  factor: number
  only: string[] | null
  memoryMb: number
  print: (words: string) => void
}

type Scene = { deployment: Deployment; url: string; shop: Shop; options: OverloadOptions; faults: string[] }

/** Overloads each surface, also while PostgreSQL hangs, and adds slow clients. */
export async function overload(options: OverloadOptions): Promise<boolean> {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-overload-'))
  await chmod(directory, 0o711)
  const deployment = await deploy({
    ...{
      mode: 'single',
      directory,
      random: randomFrom('overload'),
      hasNats: false,
      httpNodes: 1,
      say: options.print,
    },
    conditions: {
      env: { KONTOR_REQUEST_TIMEOUT: '5s' },
      postgres: {},
      clocks: false,
      disk: false,
      standby: false,
    },
    onDeath: words => faults.push(words),
  })
  const faults: string[] = []
  try {
    const server = deployment.processes[0]!
    await server.start()
    const shop = await openShop(adminAt(server.url!, await adminKeyIn(server.logFile)), 'shop')
    const scene = { deployment, url: server.url!, shop, options, faults }
    const wants = (name: string) => options.only === null || options.only.includes(name)
    const rows: string[][] = []
    for (const surface of SURFACES) {
      if (wants(surface.name)) rows.push(await flooded(scene, surface, 'busy'))
      if (wants(`${surface.name}-hang`)) rows.push(await flooded(scene, surface, 'hanging'))
    }
    if (rows.length > 0) options.print(`\n${table([HEAD, ...rows])}`)
    const slow: string[][] = []
    for (const name of Object.keys(SLOW_CLIENTS)) if (wants(name)) slow.push(await besieged(scene, name))
    if (slow.length > 0) options.print(`\n${table([SLOW_HEAD, ...slow])}`)
  } finally {
    await deployment.close()
    await rm(directory, { recursive: true, force: true })
  }
  options.print(faults.length === 0 ? '\nPASSED' : `\nFAILED\n${faults.map(words => `  ${words}`).join('\n')}`)
  return faults.length === 0
}

const HEAD = [
  ...['surface', 'capacity/s', 'offered/s', '2xx/s', '503/s', '503 p50', '503 p99', 'other', 'unanswered'],
  ...['memory', 'after 5 s'],
]

/** Sends ten times the capacity for a minute. `hanging`: while PostgreSQL hangs, when the capacity is zero. */
async function flooded(scene: Scene, surface: Surface, how: 'busy' | 'hanging'): Promise<string[]> {
  const { url, shop, options, faults, deployment } = scene
  const name = how === 'busy' ? surface.name : `${surface.name}-hang`
  const request = surface.request(url, shop)
  const closed = { url, request, rate: null, connections: 16, depth: 1 }
  await flood({ ...closed, durationMs: 1_500 })
  const capacity = computeRate(await flood({ ...closed, durationMs: CAPACITY_MS }))
  const memory = watchMemory(deployment.processes)
  const hang = how === 'hanging' ? await freezePostgres(deployment) : null
  const durationMs = (how === 'busy' ? options.seconds : Math.min(20, options.seconds)) * 1_000
  const rate = Math.max(10, capacity * options.factor)
  const result = await flood({ url, request, rate, connections: 500, depth: 64, durationMs })
  hang?.thaw()
  await sleep(RECOVERY_MS)
  const after = computeRate(await flood({ ...closed, durationMs: 2_000 }))
  memory.stop()
  const peakMb = memory.peakMb.get('server') ?? residentMb(deployment.processes[0]!.pid!)
  judge({ name, result, peakMb, capacity, after, memoryMb: options.memoryMb, faults })
  const other = [...result.statuses].filter(([status]) => status >= 300 && status !== 503)
  const per = (count: number) => String(Math.round(count / result.seconds))
  const row = [
    ...[name, String(Math.round(capacity)), per(result.sent), per(result.accepted.length), per(result.shed.length)],
    ...[ms(quantile(result.shed, 0.5)), ms(quantile(result.shed, 0.99))],
    other.map(([status, count]) => `${count}×${status}`).join(' ') || '0',
    ...[String(result.unanswered + result.broken), `${peakMb} MB`, percent(after / capacity)],
  ]
  options.print(row.join('  '))
  return row
}

function judge(facts: {
  name: string
  result: FloodResult
  peakMb: number
  capacity: number
  after: number
  memoryMb: number
  faults: string[]
}): void {
  const { name, result, peakMb, capacity, after, memoryMb, faults } = facts
  const find = (isWrong: boolean, words: string) => isWrong && faults.push(`${name}: ${words}`)
  find(peakMb > memoryMb, `${peakMb} MB of memory, allowed are ${memoryMb}`)
  find(result.withoutRetryAfter > 0, `${result.withoutRetryAfter} answers 503 without Retry-After`)
  const slow = quantile(result.shed, 0.5)
  find(slow > FAST_503_MS, `half of the answers 503 took longer than ${ms(slow)}`)
  find(after < FULL_RATE * capacity, `5 s after it the rate is ${percent(after / capacity)} of what it was`)
  for (const [status, count] of result.statuses) find(status >= 300 && status !== 503, `${count} answers ${status}`)
}

const SLOW_HEAD = ['clients', 'rate quiet/s', 'rate beside them/s', 'p99 quiet', 'p99', 'still open', 'memory']

/** Opens slow clients and checks that an ordinary client still works. */
async function besieged({ url, shop, options, faults, deployment }: Scene, name: string): Promise<string[]> {
  const request = SURFACES.find(surface => surface.name === 'track')!.request(url, shop)
  const ordinary = { url, request, rate: null, connections: 4, depth: 1, durationMs: CAPACITY_MS }
  const quiet = await flood(ordinary)
  const memory = watchMemory(deployment.processes)
  const clients = SLOW_CLIENTS[name]!(url, shop)
  await sleep(2_000)
  const beside = await flood(ordinary)
  await sleep(options.seconds > 10 ? 10_000 : 1_000)
  const later = await flood(ordinary)
  memory.stop()
  const open = clients.open()
  clients.close()
  const peakMb = memory.peakMb.get('server') ?? 0
  const [before, worst] = [computeRate(quiet), Math.min(computeRate(beside), computeRate(later))]
  // Slow clients may use their share of the machine, but no more.
  if (worst < 0.3 * before) faults.push(`${name}: an ordinary client gets ${percent(worst / before)} of its rate`)
  if (beside.broken + later.broken > 0) faults.push(`${name}: an ordinary client's connections broke`)
  if (peakMb > options.memoryMb) faults.push(`${name}: ${peakMb} MB of memory`)
  const row = [
    ...[name, String(Math.round(before)), String(Math.round(worst)), ms(quantile(quiet.accepted, 0.99))],
    ...[ms(Math.max(quantile(beside.accepted, 0.99), quantile(later.accepted, 0.99))), String(open), `${peakMb} MB`],
  ]
  options.print(row.join('  '))
  return row
}

const computeRate = ({ accepted, seconds }: FloodResult) => accepted.length / seconds
const ms = (value: number) => `${Math.round(value)} ms`
const percent = (part: number) => `${Math.round(part * 100)} %`

async function freezePostgres({ postgres }: Deployment): Promise<{ thaw(): void }> {
  const postmaster = (await postgres.postmasterPid())!
  const pids = [postmaster, ...listChildren(postmaster).map(({ pid }) => pid)]
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  return {
    thaw() {
      for (const pid of pids) process.kill(pid, 'SIGCONT')
    },
  }
}
