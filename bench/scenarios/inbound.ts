import { randomBytes } from 'node:crypto'
import { commandLineActor } from '../../src/admin/actor.ts'
import { openSecrets } from '../../src/admin/secrets.ts'
import { createSource } from '../../src/admin/sources.ts'
import { type LoadResult, load, type Sent } from '../load.ts'
import { besideFloor, countRows, loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { inboundBatches, inboundEvents } from '../traffic.ts'

const ITEMS = 100
const UNLIMITED = { events: 100_000_000, per_seconds: 1 }

/** Single signed webhook events and batches of 100, each compared with a bare server that parses the same JSON. */
export const inbound: Scenario = async options => {
  const { connections, seconds } = options
  const key = randomBytes(32)
  const service = await startService({ ...options, settings: { KONTOR_SECRET_KEY: key.toString('hex') } })
  try {
    const { path, ...credentials } = await newSource(service, UNLIMITED, key)
    const compare = async (traffic: Sent[], connections: number) => {
      const sent = { traffic, connections, ...credentials }
      return besideFloor({ kind: 'parse' }, sent, () => loadService(service, { ...sent, seconds }))
    }
    const before = await countRows(service, 'events')
    const single = await compare(inboundEvents(path), connections)
    const afterSingle = await countRows(service, 'events')
    const batch = await compare(inboundBatches(path, ITEMS), 16)
    const processed = (await countRows(service, 'events')) - afterSingle
    const broken = [single, batch].reduce((sum, { result }) => sum + result.refused + result.broken, 0)
    return {
      facts: {
        single,
        singleProcessed: afterSingle - before,
        batch,
        batchEventsPerSecond: batch.result.perSecond * ITEMS,
        batchEventsProcessedPerSecond: (batch.result.requests * ITEMS) / batch.result.doneAfterS,
        batchProcessed: processed,
      },
      bars: [
        {
          what: 'single events, throughput / floor',
          value: single.result.perSecond / single.floor.perSecond,
          atLeast: 0.35,
        },
        {
          what: 'batches of 100, throughput / floor',
          value: batch.result.perSecond / batch.floor.perSecond,
          atLeast: 0.2,
        },
        { what: 'errors', value: broken, atMost: 0 },
        {
          what: 'events lost',
          value: Math.max(0, batch.result.requests * ITEMS - processed),
          atMost: 0,
        },
      ],
    }
  } finally {
    await service.stop()
  }
}

const LIMIT = { events: 6_000, per_seconds: 60 }
const FLOOD_PER_SECOND = 10 * (LIMIT.events / LIMIT.per_seconds)
const QUIET_PER_SECOND = 300
const ROUNDS = 2

/**
 * One source sends ten times its limit and must not affect another source. On two cores that also run the load generators, any
 * second load has an effect, so the same is measured beside as many rejected requests.
 */
export const inboundFlood: Scenario = async options => {
  const service = await startService(options)
  try {
    const flooding = await newSource(service, LIMIT)
    const other = await newSource(service, UNLIMITED)
    const send = (source: Target, connections: number, rate: number, seconds = options.seconds) =>
      load({ url: service.url, traffic: inboundEvents(source.path), connections, rate, seconds, ...source })
    const others = (seconds?: number) => send(other, 8, QUIET_PER_SECOND, seconds)
    const flood = (seconds?: number) => send(flooding, 16, FLOOD_PER_SECOND, seconds)

    await exhaust(service, flooding)
    const [, warm] = await Promise.all([others(3), flood(3)])
    const runs = { quiet: [], besideRefused: [], besideFlood: [], floods: [warm] } as Record<string, LoadResult[]>
    for (let round = 0; round < ROUNDS; round++) {
      runs.quiet!.push(await others())
      const unauthenticated = { ...flooding, authorization: 'Bearer unknown' }
      const [besideRefused] = await Promise.all([others(), send(unauthenticated, 16, warm.perSecond)])
      runs.besideRefused!.push(besideRefused)
      const [besideFlood, theirs] = await Promise.all([others(), flood()])
      runs.besideFlood!.push(besideFlood)
      runs.floods!.push(theirs)
    }
    const share = (what: 'perSecond' | 'p50Ms', of: string) => sum(runs.besideFlood!, what) / sum(runs[of]!, what)
    const refused = sum([...runs.besideFlood!, ...runs.floods!], 'refused')
    return {
      facts: { ...runs, limit: LIMIT, medianTimesRefused: share('p50Ms', 'besideRefused') },
      bars: [
        {
          what: 'requests per second of other sources, with flood / without',
          value: share('perSecond', 'quiet'),
          atLeast: 0.8,
        },
        {
          what: 'median time of other sources, with flood / without',
          value: share('p50Ms', 'quiet'),
          atMost: 1.2,
        },
        { what: 'responses other than 200', value: refused, atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}

/** Uses up the budget before the measurement, so that all further requests are over the limit. */
async function exhaust(service: Service, { path, authorization }: Target) {
  for (const { body } of inboundBatches(path, LIMIT.events / 20).slice(0, 21)) {
    const response = await fetch(service.url + path, {
      method: 'POST',
      headers: { authorization },
      body: body!.replaceAll('@@', String(Math.random())),
    })
    if (response.status !== 200) throw new Error(`The source returned ${response.status}`)
  }
}

function sum(runs: LoadResult[], what: 'perSecond' | 'p50Ms' | 'refused'): number {
  return runs.reduce((total, run) => total + run[what], 0)
}

type Target = { path: string; authorization: string }

/** `key`: the secret key of the server. With it, the source requires signatures. */
async function newSource(service: Service, rate_limit: typeof LIMIT, key?: Buffer) {
  const operator = { actor: commandLineActor('bench'), secrets: openSecrets(key ? [key] : null) }
  const signingSecret = key ? 'secret-of-the-bench' : undefined
  const settings = { type: 'webhook', rate_limit, ...(signingSecret && { signing_secret: signingSecret }) }
  const { id, token } = await createSource(service.pool, operator, service.tenantId, settings)
  return { path: `/ingest/inbound/${id}`, authorization: `Bearer ${token}`, ...(signingSecret && { signingSecret }) }
}
