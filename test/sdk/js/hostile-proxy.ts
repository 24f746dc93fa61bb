import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

type Fate =
  | 'pass'
  | 'repeat' // the server receives it twice
  | 'dribble' // the response arrives in small pieces
  | 'drop' // the server never receives it
  | 'cut request' // the server receives half of it
  | 'late request' // the server receives it after the client's connection was closed
  | 'lose answer' // it takes effect, but the client receives no response
  | 'cut answer' // the client receives most of the response
  | 'hold answer' // it takes effect, but the response arrives after the client's timeout

/** Every second request fails, each time differently, but never by a timeout. */
export const HOSTILE: Fate[] = [
  'pass',
  'drop',
  'dribble',
  'cut request',
  'repeat',
  'lose answer',
  'pass',
  'cut answer',
  'repeat',
  'late request',
]

/** A TCP proxy to the server that applies these failures to successive requests, in turn and repeatedly. */
export async function openHostileProxy(t: TestContext, target: string, fates = HOSTILE) {
  const proxy = { url: '', requests: 0, met: new Set<Fate>() }
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()

  /** Sends a request on a new connection and resolves with the complete response. */
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

  /** Sends the first half, then closes the connection. */
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
        client.destroy()
        await clientLeft
        await ask(request)
        break
      case 'dribble': {
        const answer = await ask(request)
        for (let at = 0; at < answer.length; at += 200)
          await new Promise(resolve => client.write(answer.subarray(at, at + 200), resolve))
        client.end()
        return
      }
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
      const fate = fates[proxy.requests++ % fates.length]!
      proxy.met.add(fate)
      meet(fate, request, client, clientLeft)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })
  return proxy
}

/** A complete request, changed to close the connection; null while it is incomplete. */
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
