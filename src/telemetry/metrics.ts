import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type Metric,
  type MetricValue,
  Registry,
} from 'prom-client'

type Lag = { partition: number | string; entries: number; seconds: number }
export type PoolCounts = { totalCount: number; idleCount: number; waitingCount: number }
export type ObserveRequest = (status: number, seconds: number) => void

/** Counters of the components, and their output. */
export type Metrics = {
  /** Called once per route. The returned function costs a few additions. */
  request(method: string, route: string): ObserveRequest
  /** Group commit: entries and duration of each flush, and rejected requests. */
  accept: { flushed(entries: number, seconds: number): void; shed(): void }
  inbound(source: string, outcome: string, events?: number): void
  delivery(outcome: string): void
  /** Read on every scrape. A reader that fails or takes longer than a second is omitted. */
  watchPipeline(read: () => Promise<Lag[]>): void
  watchDeadLetters(read: () => Promise<number>): void
  watchStalled(read: () => Promise<number>): void
  watchSkippedMessages(read: () => Promise<number>): void
  watchSuppressed(read: () => Promise<number>): void
  watchExcessClaims(read: () => Promise<number>): void
  watchUnlinked(read: () => Promise<number>): void
  watchRetention(isHeld: () => Promise<boolean>): void
  /** The free part of the disk; null: unknown and omitted. */
  watchDisk(free: () => number | null): void
  /** Entries in the backlog and their limit; null: not counted yet, or no limit. */
  watchBacklog(backlog: { entries(): number | null; max: number | null }): void
  /** Requests that wait in the fair queue. */
  watchFairQueue(waiting: () => number): void
  watchPool(name: string, counts: () => PoolCounts): void
  contentType: string
  /** Includes the samples of other processes of this node. */
  text(others?: MetricsSample[]): Promise<string>
  /** For another process of this node. */
  sample(): Promise<MetricsSample>
}

/** The metrics of one process as plain data. */
export type MetricsSample = object[]

const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const APPEND_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const FLUSH_ENTRIES = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]
const LONGEST_READ_MS = 1_000

export function openMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const appendSeconds = new Histogram({
    name: 'kontor_log_append_seconds',
    help: 'Duration of a group commit to the log in seconds',
    buckets: APPEND_SECONDS,
    registers,
  })
  const flushEntries = new Histogram({
    name: 'kontor_flush_entries',
    help: 'Entries per group commit',
    buckets: FLUSH_ENTRIES,
    registers,
  })
  const shed = new Counter({ name: 'kontor_shed_total', help: 'Requests rejected because of overload', registers })
  const deliveryAttempts = new Counter({
    name: 'kontor_delivery_attempts_total',
    help: 'Delivery attempts by outcome',
    labelNames: ['outcome'],
    registers,
  })
  const inboundEvents = new Counter({
    name: 'kontor_inbound_events_total',
    help: 'Inbound events by source and outcome',
    labelNames: ['source', 'outcome'],
    registers,
  })

  return {
    request: requestMetrics(registry),
    accept: {
      flushed(entries, seconds) {
        flushEntries.observe(entries)
        appendSeconds.observe(seconds)
      },
      shed: () => shed.inc(),
    },
    inbound: (source, outcome, events = 1) => inboundEvents.inc({ source, outcome }, events),
    delivery: outcome => deliveryAttempts.inc({ outcome }),
    watchPipeline: read => watchPipeline(registry, read),
    watchDeadLetters: read =>
      watchNumber(registry, 'kontor_dead_letters', 'Dead letters: entries that could not be processed', read),
    watchSkippedMessages: read =>
      watchNumber(
        registry,
        'kontor_nats_passed_over_messages',
        'Skipped messages in the stream: not from Kontor, or unreadable (details: kontor doctor)',
        read,
      ),
    watchSuppressed: read =>
      watchNumber(
        registry,
        'kontor_suppressed_items',
        'Events and records that were not recorded because the person is suppressed',
        read,
      ),
    watchUnlinked: read =>
      watchNumber(
        registry,
        'kontor_unlinked_identifiers',
        'Public-key identifiers that are not linked because a profile has 200 of them',
        read,
      ),
    watchExcessClaims: read =>
      watchNumber(
        registry,
        'kontor_excess_sale_claims',
        'Public-key events that name an order with a verified sale, from the 21st per order',
        read,
      ),
    watchStalled: read =>
      watchNumber(
        registry,
        'kontor_pipeline_stalled_partitions',
        'Log partitions whose processing fails for a reason other than an entry (details: kontor status)',
        read,
      ),
    watchRetention: isHeld =>
      watchNumber(
        registry,
        'kontor_retention_held',
        '1 while retention is paused because the clock may be wrong (details: kontor status)',
        async () => Number(await isHeld()),
      ),
    watchDisk: free =>
      watchNumber(
        registry,
        'kontor_disk_free_ratio',
        'Free fraction of the disk of the embedded PostgreSQL; absent with DATABASE_URL',
        async () => requireKnown(free()),
      ),
    watchBacklog({ entries, max }) {
      const limit = 'KONTOR_MAX_BACKLOG: above it, writes are answered with 503'
      watchNumber(registry, 'kontor_backlog_entries', 'Accepted entries that are not processed yet', async () =>
        requireKnown(entries()),
      )
      if (max !== null) watchNumber(registry, 'kontor_backlog_limit_entries', limit, async () => max)
    },
    watchFairQueue: waiting =>
      watchNumber(
        registry,
        'kontor_turns_waiting_requests',
        'Writes that wait in the fair queue between tenants',
        async () => waiting(),
      ),
    watchPool: poolMetrics(registry),
    contentType: registry.contentType,
    async text(others = []) {
      if (others.length === 0) return registry.metrics()
      const samples = [await registry.getMetricsAsJSON(), ...others]
      return AggregatorRegistry.aggregate(samples).metrics()
    },
    sample: () => registry.getMetricsAsJSON(),
  }
}

type RouteCounts = { labels: { method: string; route: string }; byClass: number[]; buckets: number[]; sum: number }

/**
 * Counts requests here and passes them to the registry on a scrape. The registry's histogram builds a string from the labels on
 * every observation; this costs a few additions.
 */
function requestMetrics(registry: Registry): Metrics['request'] {
  const routes: RouteCounts[] = []
  new Counter({
    name: 'http_requests_total',
    help: 'Answered requests',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { labels, byClass } of routes)
        byClass.forEach((count, hundreds) => {
          if (count > 0) this.inc({ ...labels, status: `${hundreds}xx` }, count)
        })
    },
  })
  const durations = {
    name: 'http_request_duration_seconds',
    help: 'Seconds from the arrival of the headers to the response',
    type: 'histogram',
    aggregator: 'sum',
  }
  registry.registerMetric({
    ...durations,
    reset: () => {},
    get: async () => ({ ...durations, values: routes.flatMap(durationValues) }),
  } as unknown as Metric)

  return (method, route) => {
    const counts: RouteCounts = {
      labels: { method, route },
      byClass: [0, 0, 0, 0, 0, 0],
      buckets: new Array(REQUEST_SECONDS.length + 1).fill(0),
      sum: 0,
    }
    routes.push(counts)
    return (status, seconds) => {
      counts.byClass[(status / 100) | 0]!++
      counts.sum += seconds
      let bucket = 0
      while (bucket < REQUEST_SECONDS.length && seconds > REQUEST_SECONDS[bucket]!) bucket++
      counts.buckets[bucket]!++
    }
  }
}

function durationValues({ labels, buckets, sum }: RouteCounts): (MetricValue<string> & { metricName: string })[] {
  const name = 'http_request_duration_seconds'
  let count = 0
  const values = buckets.map((inBucket, index) => {
    count += inBucket
    const le = REQUEST_SECONDS[index] ?? '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  if (count === 0) return []
  return [
    ...values,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

function watchPipeline(registry: Registry, read: () => Promise<Lag[]>): void {
  let reading: Promise<Lag[] | null> | null = null
  // Both gauges are collected together and share one query.
  const readOnce = () => {
    reading ??= within(LONGEST_READ_MS, read).finally(() => {
      reading = null
    })
    return reading
  }
  const gauge = (name: string, help: string, value: (lag: Lag) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['partition'],
      registers: [registry],
      async collect() {
        const lags = await readOnce()
        this.reset()
        for (const lag of lags ?? []) this.set({ partition: lag.partition }, value(lag))
      },
    })
  gauge('kontor_pipeline_lag_entries', 'Entries that are not processed yet', lag => lag.entries)
  gauge('kontor_pipeline_lag_seconds', 'Age of the oldest entry that is not processed yet', lag => lag.seconds)
}

/** Throws for an unknown value, which omits it from the scrape. */
function requireKnown(value: number | null): number {
  if (value === null) throw new Error('unknown value')
  return value
}

function watchNumber(registry: Registry, name: string, help: string, read: () => Promise<number>): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      const value = await within(LONGEST_READ_MS, read)
      if (value !== null) this.set(value)
    },
  })
}

function poolMetrics(registry: Registry): Metrics['watchPool'] {
  const pools = new Map<string, () => PoolCounts>()
  const gauge = (name: string, help: string, count: (pool: PoolCounts) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['pool'],
      registers: [registry],
      collect() {
        for (const [pool, counts] of pools) this.set({ pool }, count(counts()))
      },
    })
  gauge('kontor_pool_total', 'Open database connections', pool => pool.totalCount)
  gauge('kontor_pool_idle', 'Idle database connections', pool => pool.idleCount)
  gauge('kontor_pool_waiting', 'Callers waiting for a database connection', pool => pool.waitingCount)
  return (name, counts) => pools.set(name, counts)
}

/** Null if it fails or takes too long, so that the other metrics are still returned. */
async function within<T>(ms: number, read: () => Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>(resolve => {
    timer = setTimeout(resolve, ms, null)
  })
  try {
    return await Promise.race([read(), late])
  } catch {
    return null
  } finally {
    clearTimeout(timer)
  }
}
