import { join } from 'node:path'
import type { Random } from '../random.ts'
import { type Nats, startNats } from './nats.ts'
import { steadyPort } from './ports.ts'
import { type Network, openProxy } from './proxy.ts'

/** Several servers as one: clients are given all of their addresses. */
export type NatsCluster = {
  url: string
  servers: Nats[]
  /** Nothing gets to it any more or away from it, from clients and the other servers, until `heal`. */
  cutOff(server: Nats): void
  /** All of them run, none of them is frozen, and all reach each other. */
  heal(): Promise<void>
  stop(): Promise<void>
}

// Servers tell each other's addresses around. Past the proxies there is to be no way, and nothing listens at this port.
const NOWHERE = '127.0.0.1:1'

type Place = { port: number; route: number; clients: Network }

/** They sync before they acknowledge. Between them and everybody who reaches them lies a network of its own. */
export async function startNatsCluster(
  directory: string,
  { count, random }: { count: number; random: Random },
): Promise<NatsCluster> {
  const places: Place[] = []
  while (places.length < count) {
    const [port, route] = [await steadyPort(), await steadyPort()]
    places.push({ port, route, clients: await openProxy({ targetPort: port, random }) })
  }
  /** By who reaches whom. */
  const routes = await Promise.all(
    places.map((_, from) =>
      Promise.all(
        places.map(({ route }, to) => (from === to ? null : openProxy({ targetPort: route, random }))),
      ),
    ),
  )
  const servers: Nats[] = []
  for (const [i, { port, route, clients }] of places.entries()) {
    // Its own address too: a server takes the number of its routes for that of the servers to wait for, and two that have found
    // each other would make a cluster without the third.
    const all = routes[i]!.map(proxy => `"nats://127.0.0.1:${proxy?.port ?? route}"`)
    const cluster = `cluster { name: kontor, listen: "127.0.0.1:${route}", advertise: "${NOWHERE}", routes: [${all.join(', ')}] }`
    const settings = `server_name: nats-${i}
client_advertise: "127.0.0.1:${clients.port}"
${count > 1 ? cluster : ''}`
    servers.push(await startNats(join(directory, String(i)), { synced: true, settings, port }))
  }

  const routesOf = (i: number) =>
    [...routes[i]!, ...routes.map(row => row[i]!)].filter(proxy => proxy !== null)
  const networks = [...places.map(({ clients }) => clients), ...routes.flat().filter(proxy => proxy !== null)]
  return {
    url: places.map(({ clients }) => `nats://127.0.0.1:${clients.port}`).join(','),
    servers,
    cutOff(server) {
      const i = servers.indexOf(server)
      for (const network of [places[i]!.clients, ...routesOf(i)]) network.set({ kind: 'black hole' })
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
