import { besideFloor, countRows, loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { productBatches, productWrites } from '../traffic.ts'

/** Single writes and batches of different products. The time ends when the last one is applied. */
export const recordsWrite: Scenario = async options => {
  const { connections, seconds } = options
  const traffic = productWrites()
  const service = await startService(options)
  try {
    const { floor, result } = await besideFloor({ kind: 'parse' }, { traffic, connections }, async () => {
      const writing = { traffic, connections, authorization: service.private, warmUp: false }
      await loadService(service, { ...writing, seconds: 2 })
      await service.drained()
      const before = await countRows(service, 'records')
      const accepted = await loadService(service, { ...writing, seconds })
      const applied = (await countRows(service, 'records')) - before
      return { accepted, applied, appliedPerSecond: applied / accepted.doneAfterS }
    })
    const { accepted } = result
    const sending = { traffic: productBatches(), connections: 4, authorization: service.private, warmUp: false }
    const before = await countRows(service, 'records')
    const batches = await loadService(service, { ...sending, seconds })
    const ofBatches = (await countRows(service, 'records')) - before
    return {
      facts: { floor, ...result, shareOfFloor: accepted.perSecond / floor.perSecond, batches },
      bars: [
        { what: 'writes accepted and applied per second', value: result.appliedPerSecond, atLeast: 8_000 },
        {
          what: 'records of batches of 1,000 accepted and applied per second',
          value: ofBatches / batches.doneAfterS,
          atLeast: 20_000,
        },
        { what: 'errors', value: accepted.refused + accepted.broken + batches.refused + batches.broken, atMost: 0 },
        { what: 'writes lost', value: Math.max(0, accepted.requests - result.applied), atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}
