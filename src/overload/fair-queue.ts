/**
 * Shares this process between tenants. Most of a request's cost arises before it waits for its commit, so a tenant with a
 * hundred connections would delay its neighbor's single request a hundredfold. While more than one tenant is active, at most
 * `capacity` requests run. A tenant below its equal share of that never waits, nor does one that used less than its equal
 * share recently.
 */
export type FairQueue = {
  /**
   * Calls `run` when the request may start: immediately, if possible. Returns a function that removes it from the queue.
   * An unauthenticated sender queues like a tenant but does not count as one: otherwise anyone could slow down a tenant
   * that is alone.
   */
  enter(tenant: string, weight: number, run: () => void, isAuthenticated?: boolean): () => void
  /** The request is finished. */
  leave(tenant: string, weight: number): void
  /** Total weight of the requests that run. */
  running(): number
  waiting(): number
}

// A tenant without requests for this long is no longer active.
const ACTIVE_MS = 1_000
// Usage decays exponentially: after this time a third still counts.
const USAGE_DECAY_MS = 500

type Waiting = { weight: number; run: () => void }
type Tenant = {
  isAuthenticated: boolean
  running: number
  usage: Usage
  lastRequestAt: number
  waiting: Waiting[]
}

type FairQueueOptions = {
  /** While several tenants are active. */
  capacity: number | AdaptiveCapacity
  /** While one tenant is active. */
  soleTenantCapacity?: number
  activeMs?: number
  now?: () => number
}

export function openFairQueue({
  capacity,
  soleTenantCapacity = Number.POSITIVE_INFINITY,
  activeMs = ACTIVE_MS,
  now = () => performance.now(),
}: FairQueueOptions): FairQueue {
  const adaptive = typeof capacity === 'number' ? fixedCapacity(capacity) : capacity
  const tenants = new Map<string, Tenant>()
  let authenticatedTenants = 0
  const totalUsage = new Usage()
  let running = 0
  let waitingCount = 0
  let forgetAt = 0
  let isStarting = false

  function countActive(at: number): number {
    if (at < forgetAt) return authenticatedTenants
    forgetAt = at + activeMs
    for (const [name, { isAuthenticated, running, lastRequestAt, waiting }] of tenants) {
      if (running > 0 || waiting.length > 0 || at - lastRequestAt <= activeMs) continue
      tenants.delete(name)
      if (isAuthenticated) authenticatedTenants--
    }
    return authenticatedTenants
  }

  function mayStart(tenant: Tenant, at: number): boolean {
    const active = countActive(at)
    if (active < 2) return running < soleTenantCapacity
    const capacity = adaptive.current()
    return (
      running < capacity ||
      tenant.running < capacity / active ||
      (tenant.running < adaptive.max / active && usesLittle(tenant, active, at))
    )
  }

  /** False for unauthenticated senders: there may be any number of them, each with its own address. */
  function usesLittle({ isAuthenticated, usage }: Tenant, active: number, at: number): boolean {
    return isAuthenticated && usage.at(at) * active < totalUsage.at(at)
  }

  function start(tenant: Tenant, { weight, run }: Waiting, at: number): void {
    tenant.running += weight
    running += weight
    tenant.usage.add(weight, at)
    totalUsage.add(weight, at)
    run()
  }

  function nextTenant(): Tenant | null {
    let next: Tenant | null = null
    for (const tenant of tenants.values())
      if (tenant.waiting.length > 0 && (next === null || tenant.running < next.running)) next = tenant
    return next
  }

  function startWaiting(): void {
    // A request that is rejected as soon as it starts leaves from within `run`: a thousand of them would recurse.
    if (isStarting) return
    isStarting = true
    try {
      const at = now()
      for (let next = nextTenant(); next !== null && mayStart(next, at); next = nextTenant()) {
        waitingCount--
        start(next, next.waiting.shift()!, at)
      }
    } finally {
      isStarting = false
    }
  }

  return {
    enter(name, weight, run, isAuthenticated = true) {
      const at = now()
      let tenant = tenants.get(name)
      if (!tenant) {
        tenant = { isAuthenticated, running: 0, usage: new Usage(), lastRequestAt: at, waiting: [] }
        tenants.set(name, tenant)
        if (isAuthenticated) authenticatedTenants++
      }
      tenant.lastRequestAt = at
      const request = { weight, run }
      // The requests of one tenant keep their order.
      if (tenant.waiting.length === 0 && mayStart(tenant, at)) {
        start(tenant, request, at)
        return () => undefined
      }
      const { waiting } = tenant
      waiting.push(request)
      waitingCount++
      adaptive.onWait()
      return () => {
        const index = waiting.indexOf(request)
        if (index < 0) return
        waiting.splice(index, 1)
        waitingCount--
      }
    },
    leave(name, weight) {
      const tenant = tenants.get(name)!
      tenant.running -= weight
      running -= weight
      if (waitingCount > 0) startWaiting()
    },
    running: () => running,
    waiting: () => waitingCount,
  }
}

/** A sum that decays exponentially. */
class Usage {
  #amount = 0
  #countedAt = 0

  at(now: number): number {
    return this.#amount * Math.exp((this.#countedAt - now) / USAGE_DECAY_MS)
  }

  add(amount: number, now: number): void {
    this.#amount = this.at(now) + amount
    this.#countedAt = now
  }
}

function fixedCapacity(capacity: number): AdaptiveCapacity {
  return { current: () => capacity, max: capacity, onWait: () => undefined }
}

/**
 * The capacity of the write queue, adjusted to whether this thread gets a processor when it needs one. On a busy machine more
 * concurrency only makes every request wait longer. With idle processors, or while requests wait for the disk, more
 * concurrency is faster.
 */
export type AdaptiveCapacity = {
  current(): number
  max: number
  /** A request has to wait: only then does the capacity matter. */
  onWait(): void
}

// Two dozen requests fill a flush. Next to a flood on two processors, a capacity of 24 / 8 / 4 / 2 / 1 gave a p99 of
// 55 / 28 / 23 / 21 / 20 ms (6 ms alone), and accepted 14,000 / 12,000 / 10,000 / 8,500 / 7,800 events/s of the flood.
const MAX_CAPACITY = 24
const MIN_CAPACITY = 4
const STEP_MS = 20
// A thread alone ran for nine tenths of the time in which it had work; next to a flood on two processors, for six tenths.
const ENOUGH_PROCESSOR = 0.75
// Reaches the minimum within 0.1 s and the maximum within 0.3 s.
const DOWN = 0.25
const UP = 1.25

export function openAdaptiveCapacity({
  processorShare = measureProcessorShare(),
  now = () => performance.now(),
} = {}): AdaptiveCapacity {
  let capacity = MAX_CAPACITY
  let steppedAt = Number.NEGATIVE_INFINITY
  return {
    current: () => capacity,
    max: MAX_CAPACITY,
    onWait() {
      const at = now()
      const sinceMs = at - steppedAt
      if (sinceMs < STEP_MS) return
      steppedAt = at
      const share = processorShare()
      // An average over a longer time does not describe the present.
      if (sinceMs > 10 * STEP_MS) return
      capacity =
        share < ENOUGH_PROCESSOR ? Math.max(MIN_CAPACITY, capacity * DOWN) : Math.min(MAX_CAPACITY, capacity * UP)
    },
  }
}

/** Since the previous call: the part of the time with work in which this thread ran. */
export function measureProcessorShare(): () => number {
  const read = () => {
    const { user, system } = process.threadCpuUsage()
    return { activeMs: performance.eventLoopUtilization().active, ranMs: (user + system) / 1_000 }
  }
  let last = read()
  return () => {
    const before = last
    last = read()
    const activeMs = last.activeMs - before.activeMs
    return activeMs > 0 ? Math.min(1, (last.ranMs - before.ranMs) / activeMs) : 1
  }
}

// A user looks at one page and then at the next.
const READER_ACTIVE_MS = 10_000
// The other connections are for writes and jobs.
const READ_SHARE = 0.8
// One connection listens for configuration changes.
const RESERVED_CONNECTIONS = 1

/**
 * The queue of reads. Without it, reads beyond the pool size wait at the pool in order of arrival, whatever their tenant.
 * With 10 connections and 100 readers of 1.5 MB lists, a neighbor's small read took 5.5 s or failed. With as many reads as
 * read connections it took 150 to 450 ms, with half of them 40 to 50 ms (5 ms alone), and the lists were not slower.
 */
export function openReadQueue(poolSize: number): FairQueue {
  const connections = Math.max(1, Math.floor((poolSize - RESERVED_CONNECTIONS) * READ_SHARE))
  return openFairQueue({
    capacity: Math.ceil(connections / 2),
    soleTenantCapacity: connections,
    activeMs: READER_ACTIVE_MS,
  })
}
