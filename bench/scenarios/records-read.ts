import { besideFloor, loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { contactReads, productReads, storedRecords } from '../traffic.ts'

const RECORDS = 10_000

/** One record by id and a product by SKU, compared with a bare server that reads a row by primary key. */
export const recordsRead: Scenario = async options => {
  const { connections, seconds } = options
  const service = await startService(options)
  try {
    await fill(service)
    const contacts = contactReads(RECORDS)
    const floor = {
      kind: 'query' as const,
      connection: service.connection,
      tenantId: service.tenantId,
    }
    const { floor: beside, result } = await besideFloor(floor, { traffic: contacts, connections }, async () => ({
      byId: await loadService(service, { traffic: contacts, ...reading() }),
      bySku: await loadService(service, { traffic: productReads(RECORDS), ...reading() }),
    }))
    function reading() {
      return { connections, seconds: seconds / 2, authorization: service.private }
    }
    const { byId, bySku } = result
    return {
      facts: { floor: beside, ...result },
      bars: [
        { what: 'by id, throughput / floor', value: byId.perSecond / beside.perSecond, atLeast: 0.9 },
        { what: 'by SKU, throughput / floor', value: bySku.perSecond / beside.perSecond, atLeast: 0.9 },
        { what: 'errors', value: byId.refused + byId.broken + bySku.refused + bySku.broken, atMost: 0 },
        {
          what: 'errors of the floor',
          value: beside.runs.reduce((sum, run) => sum + run.refused, 0),
          atMost: 0,
        },
      ],
    }
  } finally {
    await service.stop()
  }
}

async function fill(service: Service): Promise<void> {
  for (const { method, path, body } of storedRecords(RECORDS)) {
    const headers = { authorization: service.private, 'content-type': 'application/json' }
    const response = await fetch(service.url + path, { method, body: body!, headers })
    if (response.status !== 202) throw new Error(`${path} returned ${response.status}`)
  }
  await service.drained()
  await service.pool.query('analyze records')
}
