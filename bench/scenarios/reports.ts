import { setTimeout as sleep } from 'node:timers/promises'
import { commandLineActor } from '../../src/admin/actor.ts'
import { openAdmin } from '../../src/admin/admin.ts'
import { openSecrets } from '../../src/admin/secrets.ts'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { DAY_MS } from '../../src/domain/time.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { changeLedger, fillLedger } from '../billing-shop.ts'
import type { Options } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'

const SMALL = 1_000
const LARGE = 100_000
const MILLION = 1_000_000

/** Subscription reports of a small and a large tenant in the same database. */
export const reports: Scenario = options => measured(options, [SMALL, LARGE])

/** The same with a third tenant, which takes most of an hour to load. */
export const reportsMillion: Scenario = options => measured(options, [SMALL, LARGE, MILLION])

async function measured(options: Options, sizes: number[]) {
  const service = await startService(options)
  try {
    const shops: Record<number, { filledPerSecond: number; ms: Times }> = {}
    let largest: Shop | undefined
    for (const size of sizes) {
      const shop = await openShop(service, size)
      if (size === LARGE) largest = shop
      const filledPerSecond = await fill(service, shop.tenantId, size)
      shops[size] = { filledPerSecond, ms: await measureTimes(service, shop.key, options.seconds) }
    }
    const [small, large] = [shops[SMALL]!.ms, shops[LARGE]!.ms]
    const busy = await whileChanging(service, largest!, options.seconds)
    return {
      facts: { shops, busy },
      bars: [
        { what: `overview of ${LARGE}, median ms`, value: large.overview, atMost: 100 },
        {
          what: `overview of ${LARGE} / overview of ${SMALL}`,
          value: large.overview / small.overview,
          atMost: 10,
        },
        { what: 'last page / first page', value: large.lastPage / large.overview, atMost: 1.5 },
        { what: 'middle page / first page', value: large.middlePage / large.overview, atMost: 1.5 },
      ],
    }
  } finally {
    await service.stop()
  }
}

type Shop = { tenantId: number; key: string }

const CHANGES_AT_A_TIME = 20
const CHANGE_EVERY_MS = 100

/** The overview of the large tenant during 200 changes per second of subscriptions of any age. */
async function whileChanging(service: Service, { tenantId, key }: Shop, seconds: number) {
  let isDone = false
  let changes = 0
  const changing = (async () => {
    for (let due = performance.now(); !isDone; due += CHANGE_EVERY_MS) {
      await sleep(Math.max(0, due - performance.now()))
      const numbers = Array.from({ length: CHANGES_AT_A_TIME }, (_, i) => ((changes + i) * 7919) % LARGE)
      await changeLedger(service.pool, tenantId, numbers)
      changes += CHANGES_AT_A_TIME
    }
  })()
  const began = performance.now()
  await sleep(3_000)
  const times = await timesMs(service, key, '/v1/subscriptions/overview?currency=EUR', Math.max(seconds, 10))
  isDone = true
  await changing
  const at = (share: number) => times[Math.floor(times.length * share)]!
  return {
    changesPerSecond: Math.round((changes / (performance.now() - began)) * 1000),
    overviewMs: { p50: at(0.5), p99: at(0.99), max: times.at(-1)! },
  }
}

async function openShop(service: Service, size: number): Promise<Shop> {
  const admin = openAdmin({
    pool: service.pool,
    log: openPostgresLog({ pool: service.pool }),
    secrets: openSecrets([Buffer.alloc(32, 1)]),
  })(commandLineActor('bench'))
  const { id } = await admin.tenants.create({ name: `shop of ${size}` })
  const { key } = await admin.keys.create({ tenant: id, kind: 'private' })
  return { tenantId: parseTenantId(id)!, key }
}

/** Returns how many events per second were loaded. */
async function fill(service: Service, tenantId: number, size: number): Promise<number> {
  const began = performance.now()
  const events = await fillLedger(service.pool, tenantId, size)
  const seconds = (performance.now() - began) / 1000
  await untilCompacted(service)
  await service.pool.query('vacuum analyze')
  return Math.round(events / seconds)
}

/** The server compacts daily totals automatically. */
async function untilCompacted(service: Service): Promise<void> {
  for (;;) {
    const { rows } = await service.pool.query<{ left: boolean }>(
      'select exists (select from billing_account_days where not compacted) as left',
    )
    if (!rows[0]!.left) return
    await sleep(100)
  }
}

type Times = Record<'overview' | 'middlePage' | 'lastPage' | 'attention' | 'acquisition' | 'aMonthAgo', number>

async function measureTimes(service: Service, key: string, seconds: number): Promise<Times> {
  const median = (path: string) => medianMs(service, key, `/v1/subscriptions/${path}`, seconds / 6)
  const { accounts } = await get(service, key, '/v1/subscriptions/overview?currency=EUR')
  const monthAgo = new Date(Date.now() - 30 * DAY_MS).toISOString()
  return {
    overview: await median('overview?currency=EUR'),
    middlePage: await median(`overview?currency=EUR&page=${Math.ceil(accounts.pages / 2)}`),
    lastPage: await median(`overview?currency=EUR&page=${accounts.pages}`),
    attention: await median('attention?currency=EUR&days=90'),
    acquisition: await median('acquisition?currency=EUR&horizon=90'),
    aMonthAgo: await median(`overview?currency=EUR&as_of=${monthAgo}`),
  }
}

/** One request after the other. */
async function medianMs(service: Service, key: string, path: string, seconds: number): Promise<number> {
  const times = await timesMs(service, key, path, seconds)
  return times[Math.floor(times.length / 2)]!
}

/** The shortest first. */
async function timesMs(service: Service, key: string, path: string, seconds: number): Promise<number[]> {
  for (let i = 0; i < 6; i++) await get(service, key, path)
  const times: number[] = []
  for (const until = performance.now() + seconds * 1000; performance.now() < until || times.length < 5; ) {
    const began = performance.now()
    await get(service, key, path)
    times.push(Number((performance.now() - began).toFixed(1)))
  }
  return times.sort((a, b) => a - b)
}

async function get(service: Service, key: string, path: string) {
  const response = await fetch(service.url + path, { headers: { authorization: `Bearer ${key}` } })
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${path} returned ${response.status} ${body}`)
  return JSON.parse(body)
}
