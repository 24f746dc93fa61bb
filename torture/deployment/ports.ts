import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A free port below the ephemeral range. An outgoing connection could otherwise take the port while its process is down.
 */
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
