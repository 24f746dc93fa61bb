import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../random.ts'

export type Weather =
  | { kind: 'fair' }
  /** delay of each packet */
  | { kind: 'delay'; fromMs: number; toMs: number }
  /** one packet in this many is cut in the middle, and its connection breaks */
  | { kind: 'truncate'; probability: number }
  /** drops all traffic in both directions, including connection closes */
  | { kind: 'black hole' }

type Link = { client: Socket; server: Socket; queued: number }

export type Network = Awaited<ReturnType<typeof openProxy>>

/** The network between one process and another. */
export async function openProxy({ targetPort, random }: { targetPort: number; random: Random }) {
  let weather: Weather = { kind: 'fair' }
  let clearing = Promise.withResolvers<void>()
  const links = new Set<Link>()

  const listener = createServer(client => {
    const server = connect(targetPort, '127.0.0.1')
    const link: Link = { client, server, queued: 0 }
    links.add(link)
    client.setNoDelay()
    server.setNoDelay()
    carry(link, client, server)
    carry(link, server, client)
  })

  /** Preserves the order of packets. */
  function carry(link: Link, from: Socket, to: Socket): void {
    let way = Promise.resolve()
    const after = (work: () => void | Promise<void>) => {
      link.queued++
      way = way
        .then(passage)
        .then(work, () => {})
        .finally(() => link.queued--)
    }
    from.on('data', packet => {
      if (weather.kind === 'fair' && link.queued === 0) return send(from, to, packet)
      from.pause()
      after(() => {
        deliver(link, to, packet)
        from.resume()
      })
    })
    from.on('error', () => {})
    from.on('close', () =>
      after(() => {
        to.destroySoon()
        links.delete(link)
      }),
    )
  }

  function send(from: Socket, to: Socket, packet: Buffer): void {
    if (to.write(packet)) return
    from.pause()
    to.once('drain', () => from.resume())
  }

  function deliver(link: Link, to: Socket, packet: Buffer): void {
    if (weather.kind !== 'truncate' || !random.chance(weather.probability)) {
      to.write(packet)
      return
    }
    to.write(packet.subarray(0, random.integer(0, packet.length - 1)))
    to.destroySoon()
    ;(to === link.client ? link.server : link.client).resetAndDestroy()
  }

  async function passage(): Promise<void> {
    if (weather.kind === 'delay') await sleep(random.between(weather.fromMs, weather.toMs))
    while (weather.kind === 'black hole') await clearing.promise
  }

  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(0, '127.0.0.1', resolve)
  })
  const address = listener.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    set(next: Weather) {
      weather = next
      clearing.resolve()
      clearing = Promise.withResolvers<void>()
    },
    /** Breaks every connection on both sides. */
    reset() {
      for (const { client, server } of links) {
        client.resetAndDestroy()
        server.resetAndDestroy()
      }
    },
    /** Redirects new connections. */
    setTarget(port: number) {
      targetPort = port
    },
    /** As PostgreSQL sees them: client_port in pg_stat_activity. */
    clientPorts: () => [...links].flatMap(({ server }) => server.localPort ?? []),
    close() {
      weather = { kind: 'fair' }
      clearing.resolve()
      for (const { client, server } of links) {
        client.destroy()
        server.destroy()
      }
      return new Promise<void>(resolve => listener.close(() => resolve()))
    },
  }
}
