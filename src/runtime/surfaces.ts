import type pg from 'pg'
import { openAdmin } from '../admin/admin.ts'
import { openConsoleSessions } from '../admin/console-sessions.ts'
import type { Secrets } from '../admin/secrets.ts'
import type { Config } from '../config/config.ts'
import { version } from '../config/version.ts'
import type { Surface } from '../http/app.ts'
import { sessionReader } from '../http/console/session-cookie.ts'
import type { SignIn } from '../http/console/sign-in-routes.ts'
import {
  adminSurface,
  consoleSurface,
  dataSurface,
  eventSurface,
  inboundSurface,
  toolSurface,
} from '../http/surfaces.ts'
import type { Accept } from '../intake/accept.ts'
import { openInbound } from '../intake/inbound.ts'
import { openOverflow } from '../intake/overflow.ts'
import { openRejections, type Rejections } from '../intake/rejections.ts'
import { openRequests } from '../intake/requests.ts'
import type { Job } from '../jobs/jobs.ts'
import { inboundJobs, rejectionJobs } from '../jobs/maintenance.ts'
import { overflowJob } from '../jobs/overflow.ts'
import type { Log } from '../log/log.ts'
import type { Backlog } from '../overload/backlog.ts'
import { type Budgets, openBudgets } from '../overload/budgets.ts'
import type { Disk } from '../overload/disk.ts'
import { openAdaptiveCapacity, openFairQueue, openReadQueue } from '../overload/fair-queue.ts'
import { openThrottle } from '../overload/throttle.ts'
import type { Directory } from '../store/tenants/directory.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'

/** What surfaces are built from. */
export type Parts = {
  pool: pg.Pool
  log: Log
  accept: Accept
  directory: Directory
  /** How often the configuration has changed, as far as this node knows. */
  configChanges(): number
  secrets: Secrets
  metrics: Metrics
  disk: Disk
  backlog: Backlog
  tracing: Tracing | null
  now: () => Date
}

/** What to serve, what to do by the clock for it, and what is left to do when it is no longer served. */
export type OpenedSurfaces = { surfaces: Surface[]; jobs: Job[]; close(): Promise<void> }

/** The surfaces that the configuration names. */
export async function openSurfaces(config: Config, parts: Parts): Promise<OpenedSurfaces> {
  const serves = (surface: Config['surfaces'][number]) => config.surfaces.includes(surface)
  const store = config.processes > 1 ? 'postgres' : config.volumeStore
  const budgets = openBudgets({ store, pool: parts.pool })
  const writeQueue = openFairQueue({ capacity: openAdaptiveCapacity() })
  parts.metrics.watchFairQueue(writeQueue.waiting)
  const surfaces: Surface[] = []
  const rejections = openRejections(parts)
  const receiving = { ...parts, writeQueue, rejections }
  const readQueue = openReadQueue(config.poolSize)
  if (serves('data'))
    surfaces.push(dataSurface({ ...receiving, readQueue }), toolSurface({ ...parts, version }))
  if (serves('events')) surfaces.push(eventSurface({ ...receiving, budgets }))
  if (serves('console')) {
    const { allowPrivateDestinations, logRetentionMs } = config
    const adminFor = openAdmin({ ...parts, allowPrivateDestinations, logRetentionMs })
    const signIn = openSignIn(config, parts)
    surfaces.push(
      adminSurface({ ...parts, adminFor, sessionOf: signIn?.sessionOf ?? null }),
      consoleSurface({ signIn }),
    )
  }
  const recordsRejections = serves('data') || serves('events') || serves('inbound')
  const jobs = recordsRejections ? rejectionJobs(parts.pool, rejections, parts.now) : []
  if (!serves('inbound')) return { surfaces, jobs, close: () => rejections.write() }
  const inbound = await openInboundSurface(config, { ...parts, budgets, rejections })
  return {
    surfaces: [...surfaces, ...inbound.surfaces],
    jobs: [...jobs, ...inbound.jobs],
    close: async () => {
      await rejections.write()
      await inbound.close()
    },
  }
}

/** Where people sign in to the console; null: only with keys. */
function openSignIn(config: Config, { pool, now }: Parts): SignIn | null {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret, publicUrl } = config
  // The configuration has all of it or nothing.
  if (issuer === null || clientId === null || clientSecret === null || publicUrl === null) return null
  const sessions = openConsoleSessions({ pool, issuer, roles: config.oidcRoles ?? [] })
  const sessionOf = sessionReader({ sessions, publicUrl })
  const roleClaim = config.oidcRoleClaim
  return { issuer, clientId, clientSecret, publicUrl, roleClaim, sessions, sessionOf, now }
}

/** The inbound route, with the budgets of its sources and the overflow for what is over them. */
async function openInboundSurface(
  config: Config,
  parts: Parts & { budgets: Budgets; rejections: Rejections },
): Promise<OpenedSurfaces> {
  const { pool, directory, secrets, metrics, disk, backlog, rejections, now } = parts
  const overflow = openOverflow({ pool, maxPendingBytes: config.maxPendingBytes })
  // Before the first request: new events queue behind those that wait already.
  await overflow.refresh()
  const throttle = openThrottle({ maxWaitingBytes: config.maxPendingBytes })
  const inbound = openInbound({ ...parts, overflow, throttle })
  const surface = inboundSurface({
    ...{ directory, inbound, rejections, metrics, disk, backlog, now },
    requests: openRequests({ pool }),
    openSecret: secrets.open,
    signatureHeader: config.signatureHeader,
  })
  const moved = (sourceId: string, events: number) => metrics.inbound(sourceId, 'drained', events)
  return {
    surfaces: [surface],
    jobs: [overflowJob({ ...parts, overflow, moved }), ...inboundJobs(pool, inbound, now)],
    close: () => inbound.writeReceipts(),
  }
}
