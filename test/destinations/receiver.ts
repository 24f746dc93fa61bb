import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Received = {
  path: string
  headers: IncomingHttpHeaders
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages freely
  body: any
}

/** A receiver of messages: stores them and responds as configured with `answerWith`. */
export async function startReceiver() {
  const received: Received[] = []
  let answer = (_: Received, response: ServerResponse): void => void response.writeHead(204).end()
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const got = { path: request.url!, headers: request.headers, text, body: JSON.parse(text) }
    received.push(got)
    answer(got, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    on: (path: string) => received.filter(got => got.path === path),
    answerWith(next: typeof answer) {
      answer = next
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
