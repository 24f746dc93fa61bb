import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startNats } from '../../torture/deployment/nats.ts'
import { loadService, median } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { cdpBatches, trackingEvents } from '../traffic.ts'

const ROUNDS = 5
const ITEMS = 100
const WARM_UP_S = 5

type Rates = { track: number[]; batch: number[]; nodeUs: (number | null)[]; errors: number }

/** The log in PostgreSQL and in NATS with synced messages. Rounds alternate, so that noise affects both. */
export const engines: Scenario = async ({ connections, seconds }) => {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-bench-nats-'))
  const nats = await startNats(directory, { synced: true })
  const services = {
    postgres: await startService(),
    jetstream: await startService({ settings: { NATS_URL: nats.url } }),
  }
  const rates = { postgres: noRates(), jetstream: noRates() }
  try {
    // Warm up first: the JIT compiler works for seconds, which would penalize the first engine.
    for (const service of Object.values(services))
      await measure(service, { connections, seconds: Math.max(WARM_UP_S, seconds) }, noRates())
    // Rounds alternate, because PostgreSQL's cleanup after one engine runs during the other.
    const order = ['postgres', 'jetstream'] as const
    for (let round = 0; round < ROUNDS; round++)
      for (const engine of round % 2 === 0 ? order : order.toReversed())
        await measure(services[engine], { connections, seconds: Math.ceil(seconds / ROUNDS) }, rates[engine])
    const share = (of: 'track' | 'batch') => median(rates.jetstream[of]) / median(rates.postgres[of])
    return {
      facts: rates,
      bars: [
        { what: 'track on JetStream / on PostgreSQL', value: share('track'), atLeast: 0.8 },
        {
          what: 'batches accepted and processed on JetStream / on PostgreSQL',
          value: share('batch'),
          atLeast: 0.8,
        },
        { what: 'errors', value: rates.postgres.errors + rates.jetstream.errors, atMost: 0 },
      ],
    }
  } finally {
    await services.postgres.stop()
    await services.jetstream.stop()
    await nats.kill()
    await rm(directory, { recursive: true, force: true })
  }
}

async function measure(
  service: Service,
  { connections, seconds }: { connections: number; seconds: number },
  rates: Rates,
): Promise<void> {
  const sending = { seconds, authorization: service.tracking, warmUp: false }
  const single = await loadService(service, { traffic: trackingEvents(), connections, ...sending })
  const batches = await loadService(service, { traffic: cdpBatches(), connections: 16, ...sending })
  rates.track.push(single.perSecond)
  rates.nodeUs.push(single.nodeUs)
  rates.batch.push((batches.requests * ITEMS) / batches.doneAfterS)
  rates.errors += single.refused + single.broken + batches.refused + batches.broken
}

const noRates = (): Rates => ({ track: [], batch: [], nodeUs: [], errors: 0 })
