import { join } from 'node:path'
import type { Random } from '../random.ts'
import { type Nats, startNats } from './nats.ts'
import { steadyPort } from './ports.ts'
import { type Network, openProxy } from './proxy.ts'

/** A cluster of servers. Clients get all addresses. */
export type NatsCluster = {
  url: string
  servers: Nats[]
  /** Blocks all traffic between a server and its clients and peers, until `heal`. */
  cutOff(server: Nats): void
  /** Restores all servers and their connections. */
  heal(): Promise<void>
  stop(): Promise<void>
}

// Servers advertise addresses to each other. Nothing listens on this port, so that all traffic uses the proxies.
const NOWHERE = '127.0.0.1:1'

type Place = { port: number; route: number; clients: Network }

/** Servers sync before they acknowledge. Each connection passes through its own proxy. */
export async function startNatsCluster(
  directory: string,
  { count, random }: { count: number; random: Random },
): Promise<NatsCluster> {
  const places: Place[] = []
  while (places.length < count) {
    const [port, route] = [await steadyPort(), await steadyPort()]
    places.push({ port, route, clients: await openProxy({ targetPort: port, random }) })
  }
  /** By source and destination. */
  const routes = await Promise.all(
    places.map((_, from) =>
      Promise.all(places.map(({ route }, to) => (from === to ? null : openProxy({ targetPort: route, random })))),
    ),
  )
  const servers: Nats[] = []
  for (const [i, { port, route, clients }] of places.entries()) {
    // Includes its own address, because a server expects as many peers as it has routes. Otherwise two servers would form a
    // cluster without the third.
    const all = routes[i]!.map(proxy => `"nats://127.0.0.1:${proxy?.port ?? route}"`)
    const cluster = `cluster { name: kontor, listen: "127.0.0.1:${route}", advertise: "${NOWHERE}", routes: [${all.join(', ')}] }`
    const settings = `server_name: nats-${i}
client_advertise: "127.0.0.1:${clients.port}"
${count > 1 ? cluster : ''}`
    servers.push(await startNats(join(directory, String(i)), { synced: true, settings, port }))
  }

  const buildRoutes = (i: number) => [...routes[i]!, ...routes.map(row => row[i]!)].filter(proxy => proxy !== null)
  const networks = [...places.map(({ clients }) => clients), ...routes.flat().filter(proxy => proxy !== null)]
  return {
    url: places.map(({ clients }) => `nats://127.0.0.1:${clients.port}`).join(','),
    servers,
    cutOff(server) {
      const i = servers.indexOf(server)
      for (const network of [places[i]!.clients, ...buildRoutes(i)]) network.set({ kind: 'black hole' })
    },
    async heal() {
      for (const network of networks) network.set({ kind: 'fair' })
      for (const server of servers) {
        if (server.isRunning()) server.thaw()
        else await server.start()
      }
    },
    async stop() {
      await Promise.all(servers.map(server => server.stop()))
      await Promise.all(networks.map(network => network.close()))
    },
  }
}
