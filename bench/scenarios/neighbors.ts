import { commandLineActor } from '../../src/admin/actor.ts'
import { openAdmin } from '../../src/admin/admin.ts'
import { openSecrets } from '../../src/admin/secrets.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { type LoadResult, load } from '../load.ts'
import { median } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { cdpBatches, trackingEvents } from '../traffic.ts'

const STEADY_PER_SECOND = 100
// A p99 over a few seconds depends on the worst moment of the machine, so rounds alternate and the median counts.
const ROUNDS = 3
// Share of the maximum rate: a busy neighbor, far below a flood.
const BUSY_PER_SECOND = { singles: 200, batches: 25 }

type Round = Record<'alone' | 'besideBusy' | 'besideFlood', LoadResult> & { flooded: LoadResult[] }

/**
 * A tenant with a low request rate, alone, beside a flooding tenant and beside a busy tenant, which shows the cost of any other
 * load on this machine. Then the same for reads.
 */
export const neighbors: Scenario = async ({ connections, seconds }) => {
  const service = await startService()
  try {
    const quiet = await anotherTenant(service)
    const { url, tracking: authorization } = service
    const steady = () =>
      load({
        ...{ url, traffic: trackingEvents(), connections: 4, seconds, rate: STEADY_PER_SECOND },
        authorization: quiet.tracking,
      })
    const neighbor = (rates?: typeof BUSY_PER_SECOND) => [
      load({
        url,
        traffic: trackingEvents(),
        authorization,
        connections,
        seconds,
        ...atRate(rates?.singles),
      }),
      load({ url, traffic: cdpBatches(), authorization, connections: 8, seconds, ...atRate(rates?.batches) }),
    ]
    await load({ url, traffic: trackingEvents(), authorization, connections, seconds: 2 })
    await service.drained()
    const rounds: Round[] = []
    for (let i = 0; i < ROUNDS; i++) {
      const alone = await steady()
      const [besideBusy] = await Promise.all([steady(), ...neighbor(BUSY_PER_SECOND)])
      await service.drained()
      const [besideFlood, ...flooded] = await Promise.all([steady(), ...neighbor()])
      await service.drained()
      rounds.push({ alone, besideBusy, besideFlood, flooded })
    }
    const p99 = (of: 'alone' | 'besideBusy' | 'besideFlood') => median(rounds.map(round => round[of].p99Ms))
    const p99Ms = { alone: p99('alone'), besideBusy: p99('besideBusy'), besideFlood: p99('besideFlood') }
    const reads = await readingBesideReader(service, quiet.private, { connections, seconds })
    return {
      facts: { p99Ms, rounds, ...reads },
      bars: [
        {
          what: 'p99 beside a flooding tenant / p99 beside a busy tenant',
          value: p99Ms.besideFlood / p99Ms.besideBusy,
          atMost: 2,
        },
        {
          what: 'errors of the quiet tenant',
          value: rounds.reduce((sum, { besideFlood }) => sum + besideFlood.refused + besideFlood.broken, 0),
          atMost: 0,
        },
        {
          what: 'p50 of a read beside a tenant that reads at full speed / p50 alone',
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

function atRate(rate: number | undefined): { rate?: number } {
  return rate === undefined ? {} : { rate }
}

/** Lists of 100 events as fast as possible, beside repeated reads of one record. */
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
  const createKey = async (kind: 'tracking' | 'private') =>
    `Bearer ${(await admin.keys.create({ tenant: id, kind })).key}`
  return { tracking: await createKey('tracking'), private: await createKey('private') }
}
