import { connect, type Socket } from 'node:net'
import type { Shop } from '../deployment/shops.ts'
import { httpRequest } from './flood.ts'

type SlowClients = { open(): number; close(): void }

/** Opens many connections of one kind of misbehaving client. */
function crowd(url: string, count: number, behave: (socket: Socket) => void): SlowClients {
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(Number(port), hostname, () => behave(socket))
    socket.on('error', () => {})
    return socket
  })
  return {
    open: () => sockets.filter(socket => !socket.destroyed && socket.readyState === 'open').length,
    close() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

const COUNT = 300

export const SLOW_CLIENTS: Record<string, (url: string, shop: Shop) => SlowClients> = {
  /** Sends one byte per second. */
  'slow-loris': url =>
    crowd(url, COUNT, socket => {
      const text = `POST /v1/track/ HTTP/1.1\r\nhost: shop\r\nx-slow: ${'x'.repeat(10_000)}`
      let sent = 0
      const timer = setInterval(() => socket.write(text[sent++] ?? 'x'), 1_000)
      socket.on('close', () => clearInterval(timer))
      socket.resume()
    }),
  /** Sends half a body, then nothing. */
  'half-open': (url, shop) =>
    crowd(url, COUNT, socket => {
      const body = { data: 'x'.repeat(60_000) }
      const whole = httpRequest('POST', url, '/v1/track/', { authorization: `Bearer ${shop.trackingKey}` }, body)
      socket.write(whole.subarray(0, whole.length / 2))
      socket.resume()
    }),
  /** Sends requests and reads no responses. */
  'never-reading': (url, shop) =>
    crowd(url, COUNT, socket => {
      const path = '/v1/events?limit=100'
      const whole = httpRequest('GET', url, path, { authorization: `Bearer ${shop.privateKey}` })
      socket.pause()
      const ask = () => {
        while (!socket.destroyed && socket.write(whole));
      }
      socket.on('drain', ask)
      ask()
    }),
}
