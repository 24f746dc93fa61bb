import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'

const EVENTS = 20_000
const BATCH = 500

/** Delivery of queued events to a receiver that responds immediately. */
export const deliveries: Scenario = async options => {
  const service = await startService({ ...options, settings: { KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' } })
  const receiver = await startReceiver()
  try {
    const { id } = await service.command(
      ...['destination', 'create', '--tenant', 'default', '--url', receiver.url, '--what', 'events'],
    )
    await service.command('destination', 'disable', id!)
    for (let from = 0; from < EVENTS; from += BATCH) await sendEvents(service, from)
    await service.drained()
    await service.command('destination', 'enable', id!)
    await service.command('destination', 'replay', id!, '--since', '2020-01-01')
    while (receiver.ids.size < EVENTS) await sleep(20)
    const seconds = (receiver.lastAt() - receiver.firstAt()) / 1000
    return {
      facts: { requests: receiver.requests(), seconds },
      bars: [
        { what: 'deliveries per second', value: EVENTS / seconds, atLeast: 1_000 },
        { what: 'sent twice', value: receiver.requests() - EVENTS, atMost: 0 },
      ],
    }
  } finally {
    await receiver.close()
    await service.stop()
  }
}

async function sendEvents(service: { url: string; tracking: string }, from: number): Promise<void> {
  const batch = Array.from({ length: BATCH }, (_, i) => ({
    ...{ event_type: 'page_view', visitor: `v-${(from + i) % 1_000}`, event_id: `e-${from + i}` },
    data: { page: `https://shop.example/products/${i}` },
  }))
  const { status } = await fetch(`${service.url}/v1/batch`, {
    method: 'POST',
    headers: { authorization: service.tracking, 'content-type': 'application/json' },
    body: JSON.stringify({ batch }),
  })
  if (status !== 200) throw new Error(`A batch returned ${status}`)
}

async function startReceiver() {
  const ids = new Set<unknown>()
  let [requests, firstAt, lastAt] = [0, 0, 0]
  const server = createServer((request, response) => {
    requests++
    ids.add(request.headers['webhook-id'])
    lastAt = performance.now()
    firstAt ||= lastAt
    request.resume()
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    ...{ ids, requests: () => requests, firstAt: () => firstAt, lastAt: () => lastAt },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
