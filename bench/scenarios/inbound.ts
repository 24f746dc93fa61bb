import { openSecrets } from '../../src/admin/secrets.ts'
import { makeSource } from '../../src/admin/sources.ts'
import { type LoadResult, load, type Sent } from '../load.ts'
import { besideFloor, countOf, loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { inboundBatches, inboundEvents } from '../traffic.ts'

const ITEMS = 100
const UNLIMITED = { events: 100_000_000, per_seconds: 1 }

/** Single webhook events, and batches of 100, each beside a bare server that parses the same JSON. */
export const inbound: Scenario = async options => {
  const { connections, seconds } = options
  const service = await startService(options)
  try {
    const source = await newSource(service, UNLIMITED)
    const compare = async (traffic: Sent[], connections: number) =>
      besideFloor({ kind: 'parse' }, { traffic, connections }, () =>
        loadService(service, { traffic, connections, seconds, authorization: source.authorization }),
      )
    const before = await countOf(service, 'events')
    const single = await compare(inboundEvents(source.path), connections)
    const afterSingle = await countOf(service, 'events')
    const batch = await compare(inboundBatches(source.path, ITEMS), 16)
    const processed = (await countOf(service, 'events')) - afterSingle
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
          what: 'single events, share of the floor',
          value: single.result.perSecond / single.floor.perSecond,
          atLeast: 0.25,
        },
        {
          what: 'batches of 100, share of the floor',
          value: batch.result.perSecond / batch.floor.perSecond,
          atLeast: 0.08,
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
const FLOOD_EVENTS_PER_SECOND = 10 * (LIMIT.events / LIMIT.per_seconds)
const QUIET_PER_SECOND = 300

/** One source sends ten times its limit; another, which keeps to its own, must not feel it. Runs alternate. */
export const inboundFlood: Scenario = async options => {
  const service = await startService(options)
  try {
    const flooding = await newSource(service, LIMIT)
    const other = await newSource(service, UNLIMITED)
    const flood = (seconds: number) =>
      load({
        url: service.url,
        ...{ traffic: inboundEvents(flooding.path), authorization: flooding.authorization, seconds },
        ...{ connections: 16, rate: FLOOD_EVENTS_PER_SECOND },
      })
    const send = (seconds: number) =>
      load({
        url: service.url,
        ...{ traffic: inboundEvents(other.path), authorization: other.authorization, seconds },
        ...{ connections: 8, rate: QUIET_PER_SECOND },
      })
    await Promise.all([send(3), flood(3)])
    const quiet: LoadResult[] = []
    const flooded: LoadResult[] = []
    const floods: LoadResult[] = []
    for (let round = 0; round < 3; round++) {
      quiet.push(await send(options.seconds))
      const [theirs, flooding] = await Promise.all([send(options.seconds), flood(options.seconds)])
      flooded.push(theirs)
      floods.push(flooding)
    }
    const refused = [...flooded, ...floods].reduce((sum, run) => sum + run.refused + run.broken, 0)
    return {
      facts: { quiet, flooded, floods, limit: LIMIT },
      bars: [
        {
          what: "the others' requests a second, share of quiet",
          value: share(flooded, quiet, 'perSecond'),
          atLeast: 0.8,
        },
        { what: "the others' median time, times quiet", value: share(flooded, quiet, 'p50Ms'), atMost: 1.2 },
        { what: 'answers other than 200', value: refused, atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}

function share(some: LoadResult[], others: LoadResult[], what: 'perSecond' | 'p50Ms'): number {
  const sum = (runs: LoadResult[]) => runs.reduce((total, run) => total + run[what], 0)
  return sum(some) / sum(others)
}

async function newSource(service: Service, rate_limit: { events: number; per_seconds: number }) {
  const { id, token } = await makeSource(service.pool, openSecrets(null), service.tenantId, {
    type: 'webhook',
    rate_limit,
  })
  return { path: `/ingest/inbound/${id}`, authorization: `Bearer ${token}` }
}
