import type { Command } from '@commander-js/extra-typings'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { AdminError } from '../admin/error.ts'
import { type RemoteServer, remoteServer } from '../config/config.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'

const NOTES = `
Use this command for agents that start MCP servers as local programs. It passes each Model Context Protocol message to KONTOR_URL
(default: http://localhost:8080) with the private key KONTOR_KEY. The scopes of the key determine the available tools, which
are all read-only. Clients that support MCP over HTTP can use /mcp directly. See docs/guides/agents.md.`

export function addMcp(program: Command, out: Output): void {
  program
    .command('mcp')
    .description('Run an MCP server over stdio, for AI agents.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('KONTOR_URL=https://kontor.example.com KONTOR_KEY=private-… kontor mcp'))
    .action(async () => {
      const server = remoteServer()
      if (!server) throw new UsageError('KONTOR_KEY is not set. Set it to a private key (private-…) of the tenant.')
      await bridge(server, out)
    })
}

// The JSON-RPC code for an internal error.
const INTERNAL_ERROR = -32603

const START_WITHIN_MS = 5_000

/** Passes messages between stdio and the server until stdin ends. The server defines the tools. */
async function bridge({ url, key }: RemoteServer, out: Output): Promise<void> {
  await checkKey({ url, key })
  // Not imported at the top, because `kontor --help` loads every command.
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js')
  const agent = new StdioServerTransport()
  const server = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
    async fetch(to, init) {
      const response = await fetch(to, init)
      // the transport handles the response to GET, which says that there is no event stream
      if (init?.method === 'POST' && response.status >= 400) throw await readErrorResponse(response)
      return response
    },
  })
  const underWay = new Set<Promise<void>>()
  server.onmessage = message => void agent.send(message)
  // `pass` reports the failure of a message to its sender.
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
      const words = `Request to ${url} failed: ${(cause as Error | undefined)?.message || reason}`
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

/** An HTTP error response of the server. */
class ErrorResponse extends Error {
  readonly status: number
  constructor(status: number, words: string) {
    super(words)
    this.status = status
  }
}

async function readErrorResponse(response: Response): Promise<ErrorResponse> {
  const text = await response.text().catch(() => '')
  return new ErrorResponse(response.status, `HTTP ${response.status}: ${describeBody(text)}`)
}

/** The text of a problem document, or the beginning of any other body. */
function describeBody(text: string): string {
  try {
    const { title, detail, code } = JSON.parse(text) as Record<string, unknown>
    if (typeof detail === 'string') return `${title}. ${detail} (${code})`
  } catch {}
  return text.slice(0, 200) || '(empty response)'
}

/** Fails early if the key is wrong, because no request would ever succeed. An unreachable server may still come up. */
async function checkKey({ url, key }: RemoteServer): Promise<void> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'ping' }),
    signal: AbortSignal.timeout(START_WITHIN_MS),
  }).catch(() => null)
  if (response?.status !== 401 && response?.status !== 403) return response?.body?.cancel()
  const { message } = await readErrorResponse(response)
  throw new AdminError('forbidden', 'refused', `${url} rejected KONTOR_KEY: ${message}`)
}
