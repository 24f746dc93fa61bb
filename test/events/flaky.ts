import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { TestContext } from 'node:test'

/** busy: 503, and the server does not receive the request. lost: it takes effect, but there is no response. */
type Failure = 'busy' | 'lost'

/** A proxy to the server. Each request gets the next failure of `failures`, until none is left. */
export async function openFlakyProxy(t: TestContext, target: () => string) {
  const proxy = { url: '', failures: [] as Failure[], posts: 0 }
  const cors = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'retry-after' }

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming)
    const failure = incoming.method === 'POST' ? proxy.failures.shift() : undefined
    if (incoming.method === 'POST') proxy.posts++
    if (failure === 'busy') {
      outgoing.writeHead(503, { 'retry-after': '1', ...cors }).end('{}')
      return
    }
    const onward = forward(
      target() + incoming.url,
      { method: incoming.method, headers: incoming.headers, agent: false },
      async answer => {
        const text = await buffer(answer)
        if (failure === 'lost') incoming.socket.destroy()
        else outgoing.writeHead(answer.statusCode!, answer.headers).end(text)
      },
    )
    // The server is restarting and refuses connections.
    onward.on('error', () => incoming.socket.destroy())
    onward.end(body)
  }

  const server = createServer((incoming, outgoing) => pass(incoming, outgoing).catch(() => incoming.socket.destroy()))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(
    () =>
      new Promise(resolve => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  return proxy
}
