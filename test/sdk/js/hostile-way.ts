import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** What happens to requests on their way, in turn. All but `pass` and `repeat` look like a fault to the client. */
export const FATES = [
  'pass',
  'drop', // the server never hears of it
  'pass',
  'cut request', // the server hears half of it
  'repeat', // the server hears it twice
  'lose answer', // it takes effect, and the client never hears of it
  'pass',
  'cut answer', // the client hears most of the answer
  'repeat',
  'hold answer', // it takes effect, but the client has given up by then
  'pass',
  'late request', // the server hears of it when the client has given up
] as const

type Fate = (typeof FATES)[number]

/** A TCP way to the server on which each request meets the next of the fates, over and over. */
export async function hostileWay(t: TestContext, target: string) {
  const way = { url: '', requests: 0, met: new Set<Fate>() }
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()

  /** Sends a request on a connection of its own and resolves with all that came back. */
  function ask(request: Buffer): Promise<Buffer> {
    return new Promise(resolve => {
      const answer: Buffer[] = []
      const server = connect(Number(port), hostname, () => server.write(request))
      sockets.add(server)
      server.on('data', chunk => answer.push(chunk))
      server.on('error', () => undefined)
      server.on('close', () => {
        sockets.delete(server)
        resolve(Buffer.concat(answer))
      })
    })
  }

  /** Sends the first half, and hangs up when it has left. */
  function askHalf(request: Buffer): void {
    const server = connect(Number(port), hostname, () =>
      server.write(request.subarray(0, request.length / 2), () => server.destroy()),
    )
    server.on('error', () => undefined)
  }

  async function meet(fate: Fate, request: Buffer, client: Socket, clientLeft: Promise<unknown>) {
    switch (fate) {
      case 'drop':
        break
      case 'cut request':
        askHalf(request)
        break
      case 'late request':
        await clientLeft
        await ask(request)
        break
      case 'lose answer':
        await ask(request)
        break
      case 'hold answer':
        await ask(request)
        await clientLeft
        break
      case 'cut answer': {
        const answer = await ask(request)
        await new Promise(resolve => client.write(answer.subarray(0, answer.length - 10), resolve))
        break
      }
      case 'repeat':
        client.end((await Promise.all([ask(request), ask(request)]))[0])
        return
      case 'pass':
        client.end(await ask(request))
        return
    }
    client.destroy()
  }

  const server = createServer(client => {
    sockets.add(client)
    const clientLeft = new Promise(resolve => client.on('close', resolve))
    clientLeft.then(() => sockets.delete(client))
    client.on('error', () => undefined)
    let received = Buffer.alloc(0)
    client.on('data', chunk => {
      received = Buffer.concat([received, chunk])
      const request = wholeRequest(received)
      if (!request) return
      client.removeAllListeners('data').resume()
      const fate = FATES[way.requests++ % FATES.length]!
      way.met.add(fate)
      meet(fate, request, client, clientLeft)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  way.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })
  return way
}

/** A request that is all there, asking for an end of the connection; null before. */
function wholeRequest(received: Buffer): Buffer | null {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return null
  const head = received.subarray(0, end).toString('latin1')
  const length = Number(/\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  const body = received.subarray(end + 4)
  if (body.length < length) return null
  const closing = `${head.replace(/\r\nconnection:[^\r]*/i, '')}\r\nconnection: close\r\n\r\n`
  return Buffer.concat([Buffer.from(closing, 'latin1'), body])
}
