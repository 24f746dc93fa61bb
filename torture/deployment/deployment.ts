import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../random.ts'
import { type Disk, mountDisk } from './disk.ts'
import { type NatsCluster, startNatsCluster } from './nats-cluster.ts'
import { steadyPort } from './ports.ts'
import { embeddedPostgres, type OwnPostgres, ownPostgres, type Postgres } from './postgres.ts'
import { type KontorProcess, kontorProcess, type Role } from './process.ts'
import { type Network, openProxy } from './proxy.ts'
import { promote, startStandby } from './standby.ts'

export type Mode = 'single' | 'fleet'

/** What the selected faults require of the installation. */
export type Conditions = {
  /** settings of every Kontor process */
  env: Record<string, string>
  /** settings of an external PostgreSQL */
  postgres: Record<string, string>
  /** clocks that can be set wrong */
  clocks: boolean
  /** a disk that can be filled */
  disk: boolean
  /** a standby that PostgreSQL waits for before it acknowledges */
  standby: boolean
}

export type Deployment = {
  mode: Mode
  directory: string
  conditions: Conditions
  processes: KontorProcess[]
  postgres: Postgres
  /** By the process whose network it is; only in a fleet. */
  proxies: Map<KontorProcess, Network>
  disk: Disk | null
  nats: NatsCluster | null
  /** The process that serves the admin API; it starts first. */
  first: KontorProcess
  /** Switches the fleet to another PostgreSQL. */
  moveTo(postgres: OwnPostgres): void
  /** Kills the primary and promotes the standby. */
  failOver(): Promise<void>
  /** Stops everything and keeps the files. */
  close(): Promise<void>
}

type DeploymentOptions = {
  mode: Mode
  directory: string
  conditions: Conditions
  random: Random
  hasNats: boolean
  /** How many HTTP processes a fleet has. */
  httpNodes: number
  say: (words: string) => void
  onDeath: (words: string) => void
}

type Parts = DeploymentOptions & { disk: Disk | null; nats: NatsCluster | null; dataDir: string }

const NATS_SERVERS: Record<Mode, number> = { single: 1, fleet: 3 }

/** `kontor start` on one machine, or HTTP processes and workers on an external PostgreSQL. */
export async function deploy(options: DeploymentOptions): Promise<Deployment> {
  const { directory, conditions, say } = options
  const dataDir = join(directory, 'disk/data')
  const disk = conditions.disk ? await mountDisk(join(directory, 'disk'), say) : null
  await mkdir(join(directory, 'disk'), { recursive: true, mode: 0o711 })
  const nats = options.hasNats
    ? await startNatsCluster(join(directory, 'nats'), {
        count: NATS_SERVERS[options.mode],
        random: options.random.fork('nats'),
      })
    : null
  const parts = { ...options, disk, nats, dataDir }
  return options.mode === 'single' ? deploySingle(parts) : deployFleet(parts)
}

async function deploySingle(parts: Parts): Promise<Deployment> {
  const server = await makeProcess(parts, 'server', 'server', ['--data', parts.dataDir], {})
  return {
    ...describeParts(parts),
    processes: [server],
    first: server,
    postgres: embeddedPostgres(parts.dataDir),
    proxies: new Map(),
    moveTo: () => {},
    failOver: () => Promise.reject(new Error('a single server has no standby')),
    async close() {
      await server.terminate()
      await closeParts(parts)
    },
  }
}

const WORKERS = 2

async function deployFleet(parts: Parts): Promise<Deployment> {
  let postgres = await ownPostgres(parts.dataDir, parts.conditions.postgres)
  let standby = parts.conditions.standby ? await startStandby(postgres, join(parts.directory, 'disk/standby')) : null
  const proxies = new Map<KontorProcess, Network>()
  const env = { KONTOR_SECRET_KEY: '22'.repeat(32), KONTOR_VOLUME_STORE: 'postgres' }

  async function node(name: string, role: Role, surfaces: string): Promise<KontorProcess> {
    const start = (url: string) =>
      makeProcess(parts, name, role, ['--surfaces', surfaces], { ...env, DATABASE_URL: url })
    if (standby) return start(urlOfBoth(postgres, standby))
    const proxy = await openProxy({ targetPort: postgres.port, random: parts.random.fork(name) })
    const made = await start(postgres.url(proxy.port))
    proxies.set(made, proxy)
    return made
  }
  const first = await node('http-1', 'http', 'data,events,inbound,console')
  const processes = [first]
  for (let i = 2; i <= parts.httpNodes; i++) processes.push(await node(`http-${i}`, 'http', 'data,events,inbound'))
  for (let i = 1; i <= WORKERS; i++) processes.push(await node(`worker-${i}`, 'worker', 'worker'))
  return {
    ...describeParts(parts),
    processes,
    first,
    get postgres() {
      return postgres
    },
    proxies,
    moveTo(next) {
      postgres = next
      for (const proxy of proxies.values()) proxy.setTarget(next.port)
    },
    async failOver() {
      const next = standby
      if (next === null) throw new Error('The standby was already promoted')
      standby = null
      await promote(next, postgres)
      postgres = next
    },
    async close() {
      for (const proxy of proxies.values()) proxy.set({ kind: 'fair' })
      await Promise.all(processes.map(process => process.terminate()))
      await Promise.all([...proxies.values()].map(proxy => proxy.close()))
      await postgres.stop()
      await standby?.stop()
      await closeParts(parts)
    },
  }
}

/** Direct connections without the fault-injecting proxies. */
function urlOfBoth(primary: OwnPostgres, standby: OwnPostgres): string {
  const url = primary.url(primary.port)
  return `${url.replace(`:${primary.port}/`, `:${primary.port},127.0.0.1:${standby.port}/`)}?target_session_attrs=read-write`
}

const describeParts = ({ mode, directory, conditions, disk, nats }: Parts) => ({
  mode,
  directory,
  conditions,
  disk,
  nats,
})

async function closeParts({ nats }: Parts): Promise<void> {
  await nats?.stop()
}

async function makeProcess(
  { directory, conditions, nats, onDeath }: Parts,
  name: string,
  role: Role,
  args: string[],
  env: Record<string, string>,
): Promise<KontorProcess> {
  const port = await steadyPort()
  const clockFile = conditions.clocks ? join(directory, `clock-${name}`) : null
  if (clockFile) await writeFile(clockFile, '0')
  return kontorProcess({
    name,
    role,
    args: ['--port', String(port), ...args],
    env: { ...conditions.env, ...env, ...(nats && { NATS_URL: nats.url }) },
    opsPort: await steadyPort(),
    url: role === 'worker' ? null : `http://127.0.0.1:${port}`,
    logFile: join(directory, `${name}.log`),
    clockFile,
    onDeath,
  })
}
