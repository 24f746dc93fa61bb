// Loaded by `kontor mcp` alone.
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { AdminError } from '../admin/error.ts'
import type { RemoteServer } from '../config/remote.ts'
import type { Output } from './output.ts'

// JSON-RPC: an error of the server's own making.
const INTERNAL_ERROR = -32603

const START_WITHIN_MS = 5_000

/** What a server answers instead of a message, in words. */
class Refused extends Error {
  readonly status: number
  constructor(status: number, words: string) {
    super(words)
    this.status = status
  }
}

async function refusalOf(response: Response): Promise<Refused> {
  const text = await response.text().catch(() => '')
  return new Refused(response.status, `it answered ${response.status}: ${wordsOf(text)}`)
}

/** A problem document as people read it; anything else is not ours. */
function wordsOf(text: string): string {
  try {
    const { title, detail, code } = JSON.parse(text) as Record<string, unknown>
    if (typeof detail === 'string') return `${title}. ${detail} (${code})`
  } catch {}
  return text.slice(0, 200) || 'nothing'
}

/** Before an agent waits for it: with a wrong key nothing would ever work. A server that is away may still come. */
async function checkKey({ url, key }: RemoteServer): Promise<void> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'ping' }),
    signal: AbortSignal.timeout(START_WITHIN_MS),
  }).catch(() => null)
  if (response?.status !== 401 && response?.status !== 403) return response?.body?.cancel()
  const { message } = await refusalOf(response)
  throw new AdminError('forbidden', 'refused', `${url} does not take KONTOR_KEY: ${message}`)
}

/** Passes messages on until stdin ends: what the tools are and what they answer is the server's business alone. */
export async function bridge({ url, key }: RemoteServer, out: Output): Promise<void> {
  await checkKey({ url, key })
  const agent = new StdioServerTransport()
  const server = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
    async fetch(to, init) {
      const response = await fetch(to, init)
      // that it has no stream to listen to is an answer, too
      if (init?.method === 'POST' && response.status >= 400) throw await refusalOf(response)
      return response
    },
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
      const { message: reason, cause } = error as Error
      const words = `${url} cannot answer: ${(cause as Error | undefined)?.message || reason}`
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
