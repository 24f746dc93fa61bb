// Loaded by `kontor mcp` alone.
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { RemoteServer } from '../config/remote.ts'
import type { Output } from './output.ts'

// JSON-RPC: an error of the server's own making.
const INTERNAL_ERROR = -32603

/** Passes messages on until stdin ends: what the tools are and what they answer is the server's business alone. */
export async function bridge({ url, key }: RemoteServer, out: Output): Promise<void> {
  const agent = new StdioServerTransport()
  const server = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  })
  const underWay = new Set<Promise<void>>()
  server.onmessage = message => void agent.send(message)
  // What a message fails with is told to who sent it.
  server.onerror = () => {}
  agent.onerror = error => out.say(error.message)
  agent.onmessage = message => {
    const passing = pass(message).finally(() => underWay.delete(passing))
    underWay.add(passing)
  }

  async function pass(message: JSONRPCMessage): Promise<void> {
    try {
      await server.send(message)
    } catch (error) {
      const words = `${url} cannot answer: ${(error as Error).message}`
      out.say(words)
      if ('id' in message && 'method' in message)
        await agent.send({ jsonrpc: '2.0', id: message.id, error: { code: INTERNAL_ERROR, message: words } })
    }
  }

  await server.start()
  await agent.start()
  await new Promise(resolve => process.stdin.once('end', resolve).once('close', resolve))
  await Promise.all(underWay)
  await agent.close()
  await server.close()
}
