import type { TestContext } from 'node:test'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify from 'fastify'
import { scriptRoute } from '../../src/http/events/script.ts'

export type Sent = {
  event_type: string
  visitor: string
  session_id: string
  user_id?: string
  event_id: string
  occurred_at: string
  data: Record<string, unknown>
}
type Arrival = { event: Sent; url: string; headers: Record<string, string | string[] | undefined> }
export type Answer = { status: number; headers?: Record<string, string> } | 'hang up'

/** An event host that records received events, and a shop on another origin with the script on its pages. */
export async function startShop(t: TestContext) {
  const arrivals: Arrival[] = []
  const waiting: { wanted: (arrival: Arrival) => boolean; found: (arrival: Arrival) => void }[] = []
  const shop = {
    arrivals,
    preflights: 0,
    head: '',
    attributes: 'data-key="trk_test"',
    answer: (_event: Sent): Answer | Promise<Answer> => ({ status: 200 }),
    arrival(wanted: (event: Sent, headers: Arrival['headers']) => boolean): Promise<Arrival> {
      const matches = (arrival: Arrival) => wanted(arrival.event, arrival.headers)
      const already = arrivals.find(matches)
      if (already) return Promise.resolve(already)
      return new Promise(found => waiting.push({ wanted: matches, found }))
    },
    eventHost: '',
    url: '',
  }

  const events = Fastify({ forceCloseConnections: true }).withTypeProvider<TypeBoxTypeProvider>()
  scriptRoute(events)
  events.options('/*', async () => {
    shop.preflights++
    return ''
  })
  events.post('/v1/track/', async (request, reply) => {
    const arrival = { event: JSON.parse(String(request.body)), url: request.url, headers: request.headers }
    arrivals.push(arrival)
    for (const { wanted, found } of waiting) if (wanted(arrival)) found(arrival)
    const answer = await shop.answer(arrival.event)
    if (answer === 'hang up') {
      reply.hijack()
      return request.raw.socket.destroy()
    }
    const { status, headers } = answer
    return reply
      .code(status)
      .headers({
        'access-control-allow-origin': '*',
        'access-control-expose-headers': 'retry-after',
        ...headers,
      })
      .send({})
  })
  const site = Fastify({ forceCloseConnections: true })
  site.get('/*', (_request, reply) =>
    reply
      .type('text/html')
      .send(
        `<!doctype html><title>Tea</title><link rel="icon" href="data:,">${shop.head}` +
          `<script async src="${shop.eventHost}/k.js" ${shop.attributes}></script>`,
      ),
  )
  shop.eventHost = await events.listen({ host: '127.0.0.1', port: 0 })
  shop.url = await site.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => Promise.all([events.close(), site.close()]))
  return shop
}
