import { cpuSeconds } from './cpu.ts'
import { type Floor, startFloor } from './floor.ts'
import { type LoadOptions, type LoadResult, load } from './load.ts'
import type { Service } from './service.ts'

export type Options = { seconds: number; connections: number; profileTo: string | undefined }

/** CPU time per request and process, the most stable number on a shared machine. */
export type Cost = { nodeUs: number | null; postgresUs: number | null }

type Measured = LoadResult &
  Cost & {
    /** from the end of the load to its last effect, and from its beginning */
    drainedAfterS: number
    doneAfterS: number
  }

/** Runs a load on the service after a short warm-up. */
export async function loadService(
  service: Service,
  options: Omit<LoadOptions, 'url'> & { warmUp?: boolean },
): Promise<Measured> {
  const target = { ...options, url: service.url }
  if (options.warmUp ?? true) {
    await load({ ...target, seconds: 2 })
    await service.drained()
  }
  return costing({ node: service.pid, postgres: await service.postmasterPid() }, target, service.drained)
}

/** Adds the CPU time of the processes until the last effect of the load. */
async function costing(
  pids: { node: number; postgres: number | null },
  options: LoadOptions,
  drained: () => Promise<unknown>,
): Promise<Measured> {
  const spent = () => ({
    node: cpuSeconds(pids.node),
    postgres: pids.postgres === null ? null : cpuSeconds(pids.postgres, true),
  })
  const before = spent()
  const startedAt = performance.now()
  const result = await load(options)
  const loadedAt = performance.now()
  await drained()
  const drainedAt = performance.now()
  const after = spent()
  const each = (from: number | null, to: number | null) =>
    from === null || to === null ? null : Math.round(((to - from) / result.requests) * 1e6)
  return {
    ...result,
    nodeUs: each(before.node, after.node),
    postgresUs: each(before.postgres, after.postgres),
    drainedAfterS: (drainedAt - loadedAt) / 1000,
    doneAfterS: (drainedAt - startedAt) / 1000,
  }
}

type FloorMeasured = { perSecond: number; p50Ms: number; runs: Measured[] }

/** Returns the mean of the floor before and after `work`, which reduces the effect of changing noise. */
export async function besideFloor<T>(
  floor: Floor,
  floorLoad: Pick<LoadOptions, 'traffic' | 'connections' | 'signingSecret'>,
  work: () => Promise<T>,
): Promise<{ floor: FloorMeasured; result: T }> {
  const server = await startFloor(floor)
  const pids = { node: server.pid, postgres: null }
  const target = { ...floorLoad, url: server.url, authorization: 'none', seconds: 3 }
  try {
    await load({ ...target, seconds: 1 })
    const before = await costing(pids, target, async () => {})
    const result = await work()
    const after = await costing(pids, target, async () => {})
    return {
      result,
      floor: {
        perSecond: (before.perSecond + after.perSecond) / 2,
        p50Ms: (before.p50Ms + after.p50Ms) / 2,
        runs: [before, after],
      },
    }
  } finally {
    await server.stop()
  }
}

export async function countRows(service: Service, table: 'events' | 'records'): Promise<number> {
  const { rows } = await service.pool.query<{ count: number }>(`select count(*) from ${table}`)
  return rows[0]!.count
}

export function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!
}
