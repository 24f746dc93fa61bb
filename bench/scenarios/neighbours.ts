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
 * that comes from the shop itself, so that what is measured is who pays for a flood, not how much a busy machine costs.
 */
export const neighbours: Scenario = async ({ connections, seconds }) => {
  const service = await startService()
  try {
    const quietKey = await anotherTenant(service)
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
    return {
      facts: { alone, besideFlood, inFlood, flooded },
      bars: [
        {
          what: 'p99 beside a flooding neighbour / p99 alone',
          value: besideFlood.p99Ms / alone.p99Ms,
          atMost: 2,
        },
        { what: 'errors of the quiet one', value: besideFlood.refused + besideFlood.broken, atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}

async function anotherTenant(service: Service): Promise<string> {
  const admin = openAdmin({
    pool: service.pool,
    log: openPostgresLog({ pool: service.pool }),
    secrets: openSecrets([Buffer.alloc(32, 1)]),
  })(commandLineActor('bench'))
  const { id } = await admin.tenants.create({ name: 'quiet' })
  const { key } = await admin.keys.create({ tenant: id, kind: 'tracking' })
  return `Bearer ${key}`
}
