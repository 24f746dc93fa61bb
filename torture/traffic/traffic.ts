import { setTimeout as sleep } from 'node:timers/promises'
import type { Shop } from '../deployment/shops.ts'
import type { Ledger } from '../ledger.ts'
import type { Random } from '../random.ts'
import { billingTraffic } from './billing.ts'
import { openClient } from './client.ts'
import { eventTraffic } from './events.ts'
import { inboundTraffic } from './inbound.ts'
import { recordTraffic } from './records.ts'
import { openSender } from './sender.ts'

export type Traffic = ReturnType<typeof startTraffic>

/** Sends load to every surface until it is stopped, during all faults. */
export function startTraffic({
  shops,
  ledger,
  random,
  urls,
  load,
  eventsKeptMs,
  patienceMs,
}: {
  shops: Shop[]
  ledger: Ledger
  random: Random
  urls: () => string[]
  load: number
  eventsKeptMs: number
  /** How long after the end a claimed request is retried before its outcome counts as unclear. */
  patienceMs: number
}) {
  const client = openClient()
  const sender = openSender({ client, ledger, random: random.fork('routes'), urls })
  const parts = (name: string) => ({ sender, random: random.fork(name), shops })
  const records = recordTraffic(parts('records'))
  const events = eventTraffic({ ...parts('events'), keptMs: eventsKeptMs })
  const inbound = inboundTraffic(parts('inbound'))
  const billing = billingTraffic(parts('billing'))
  const pace = random.fork('pace')

  /** Number of senders, and their average pause between requests. */
  const crowd = (count: number, pauseMs: number, act: () => Promise<unknown>) =>
    Array.from({ length: count }, async () => {
      while (!sender.isOver) {
        await act()
        await sleep((pace.between(0.5, 1.5) * pauseMs) / load)
      }
    })

  async function repeat(): Promise<void> {
    if (sender.acknowledged.length === 0) return
    const request = pace.pick(sender.acknowledged)
    const answer = await sender.once(request)
    if (answer?.status === 202 && request.items.length === 1)
      ledger.violation(`${request.path} accepted the used key ${request.items[0]!.claim} again`)
  }

  async function readSomething(): Promise<void> {
    const shop = pace.pick(shops)
    const path = pace.pick([
      ...['/v1/contacts/contact-1', '/v1/products?limit=20', '/v1/events?limit=20', '/v1/conversions'],
      '/v1/subscriptions/overview?currency=EUR',
    ])
    const headers = { authorization: `Bearer ${shop.privateKey}` }
    const answer = await client.send({ url: pace.pick(urls()) + path, method: 'GET', headers })
    if (answer && ![200, 404, 503].includes(answer.status))
      ledger.violation(`GET ${path} was answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 300)}`)
  }

  const senders = [
    ...crowd(5, 100, records.write),
    ...crowd(2, 250, records.batch),
    ...crowd(5, 100, events.track),
    ...crowd(2, 200, events.batch),
    ...crowd(3, 100, inbound.webhook),
    ...crowd(2, 250, inbound.cdpBatch),
    // each tenant's budget is 40 a second, and a burst is 80
    ...crowd(1, 1_500, inbound.burst),
    ...crowd(2, 150, billing.change),
    ...crowd(2, 100, repeat),
    ...crowd(1, 300, () => pace.pick([records, events, inbound]).invalid()),
    ...crowd(1, 200, readSomething),
  ]
  return {
    records,
    events,
    /** Resolves when all senders have their last response. */
    async stop(): Promise<void> {
      sender.stop()
      const hurry = setTimeout(sender.giveUp, patienceMs)
      await Promise.all(senders)
      clearTimeout(hurry)
      client.close()
    },
  }
}
