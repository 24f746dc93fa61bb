import { commandLineActor } from '../../src/admin/actor.ts'
import { openAdmin } from '../../src/admin/admin.ts'
import { openSecrets } from '../../src/admin/secrets.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { load } from '../load.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { cdpBatches, trackingEvents } from '../traffic.ts'

const STEADY_PER_SECOND = 100

/**
 * A shop that sends a little, all the time; then the same while a neighbour sends all that it can. It is held against a flood
 * that comes from the shop itself, so that what is measured is who pays for a flood, not how much a busy machine costs. Then
 * a shop that reads a little, and a neighbour that reads all that it can.
 */
export const neighbours: Scenario = async ({ connections, seconds }) => {
  const service = await startService()
  try {
    const quiet = await anotherTenant(service)
    const quietKey = quiet.tracking
    const steady = () =>
      load({
        url: service.url,
        traffic: trackingEvents(),
        authorization: quietKey,
        connections: 4,
        seconds,
        rate: STEADY_PER_SECOND,
      })
    const flood = (authorization: string) => [
      load({ url: service.url, traffic: trackingEvents(), authorization, connections, seconds }),
      load({ url: service.url, traffic: cdpBatches(), authorization, connections: 8, seconds }),
    ]
    await load({
      url: service.url,
      traffic: trackingEvents(),
      authorization: service.tracking,
      connections,
      seconds: 2,
    })
    await service.drained()
    const alone = await steady()
    const [besideFlood, ...flooded] = await Promise.all([steady(), ...flood(service.tracking)])
    await service.drained()
    const [inFlood] = await Promise.all([steady(), ...flood(quietKey)])
    await service.drained()
    const reads = await readingBesideReader(service, quiet.private, { connections, seconds })
    return {
      facts: { alone, besideFlood, inFlood, flooded, ...reads },
      bars: [
        {
          what: 'p99 beside a flooding neighbour / p99 alone',
          value: besideFlood.p99Ms / alone.p99Ms,
          atMost: 2,
        },
        { what: 'errors of the quiet one', value: besideFlood.refused + besideFlood.broken, atMost: 0 },
        {
          what: 'p50 of a read beside a neighbour that reads all it can / p50 alone',
          value: reads.readsBesideReader.p50Ms / reads.readsAlone.p50Ms,
          atMost: 40,
        },
        {
          what: 'errors of the quiet reader',
          value: reads.readsBesideReader.refused + reads.readsBesideReader.broken,
          atMost: 0,
        },
      ],
    }
  } finally {
    await service.stop()
  }
}

/** Lists of a hundred events as fast as they come, beside one record again and again. */
async function readingBesideReader(
  { url, private: flooding, drained }: Service,
  authorization: string,
  { connections, seconds }: { connections: number; seconds: number },
) {
  const record = { entityType: 'product', id: 'mug', data: { sku: 'mug' }, sourceUpdatedAt: new Date() }
  await fetch(`${url}/v1/products`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(record),
  })
  await drained()
  const steady = () =>
    load({
      ...{ url, authorization, seconds, connections: 4, rate: STEADY_PER_SECOND },
      traffic: [{ method: 'GET', path: '/v1/products/mug' }],
    })
  const readsAlone = await steady()
  const [readsBesideReader, reader] = await Promise.all([
    steady(),
    load({
      ...{ url, authorization: flooding, connections, seconds },
      traffic: [{ method: 'GET', path: '/v1/events?limit=100' }],
    }),
  ])
  return { readsAlone, readsBesideReader, reader }
}

async function anotherTenant(service: Service): Promise<Record<'tracking' | 'private', string>> {
  const admin = openAdmin({
    pool: service.pool,
    log: openPostgresLog({ pool: service.pool }),
    secrets: openSecrets([Buffer.alloc(32, 1)]),
  })(commandLineActor('bench'))
  const { id } = await admin.tenants.create({ name: 'quiet' })
  const keyOf = async (kind: 'tracking' | 'private') =>
    `Bearer ${(await admin.keys.create({ tenant: id, kind })).key}`
  return { tracking: await keyOf('tracking'), private: await keyOf('private') }
}
