import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A proxy to a server that can be cut, frozen and restored. */
export async function openWire(
  target: { host: string; port: number },
  /** Called for everything that a client sends. */
  { onSent }: { onSent?: () => void } = {},
) {
  const open = new Set<Socket>()
  let isCut = false
  let isFrozen = false
  const server = createServer(near => {
    if (isCut) return near.destroy()
    if (isFrozen) {
      open.add(near)
      near.on('error', () => {}).on('close', () => open.delete(near))
      return
    }
    const far = connect(target)
    if (onSent) near.on('data', onSent)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    isCut = true
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    connections: () => open.size,
    /** Stops forwarding without closing the connections. */
    freeze() {
      isFrozen = true
      for (const socket of open) socket.pause()
    },
    /** Forwards again, for new connections only. */
    reconnect() {
      isCut = false
      isFrozen = false
    },
    async close() {
      cut()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
