import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { problems } from '../problems.ts'
import type { McpContext, Parameters, ResultSchema } from './server.ts'

const BODY_LIMIT = 1_048_576

/** The Model Context Protocol: agents read what the key may read, through the public routes. */
export function mcpRoute(app: App, { version }: { version: string }): void {
  const known = new Map<string, Parameters>()
  const parametersOf = (route: string) => {
    const parameters = known.get(route) ?? queryParameters(app, route)
    known.set(route, parameters)
    return parameters
  }
  app.post(
    '/mcp',
    {
      config: { scope: [], bodyLimit: BODY_LIMIT },
      schema: {
        tags: ['Agent tools'],
        summary: 'Call an MCP tool',
        description:
          'Model Context Protocol over streamable HTTP without sessions: each response is JSON. Lists the tools that the scopes of the key allow; all tools are read-only. See docs/guides/agents.md.',
        body: Type.Unknown({
          description: 'A JSON-RPC 2.0 message',
          examples: [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }],
        }),
        response: { 200: Type.Unknown({ description: 'A JSON-RPC 2.0 response' }) },
      },
    },
    async (request, reply) => {
      // The protocol has no batches since 2025-06-18. In a batch, a request could be canceled before its response.
      if (Array.isArray(request.body)) throw problems.malformed('The body must be one message, not a batch.')
      const { answerAgent } = await import('./server.ts')
      const { key } = request.caller
      const resultOf = (route: string) => resultSchema(app, route)
      const asked: McpContext = {
        ...{ version, scopes: key.scopes, parametersOf, resultOf },
        get: path => get(app, request, path),
      }
      const answer = await answerAgent(webRequest(request), request.body, asked)
      return send(reply, answer)
    },
  )
}

/** Calls a route with the caller's own key and address, so the same permissions apply. */
async function get(app: App, request: FastifyRequest, url: string): Promise<{ status: number; body: string }> {
  const { authorization, 'x-api-key': apiKey } = request.headers
  const headers = { ...(authorization && { authorization }), ...(apiKey && { 'x-api-key': apiKey }) }
  const { statusCode, body } = await app.inject({ method: 'GET', url, headers, remoteAddress: request.ip })
  return { status: statusCode, body }
}

/** The body is already parsed, and the response is always JSON, so Accept and the body are constants. */
function webRequest({ headers }: FastifyRequest): Request {
  const kept = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' })
  const version = headers['mcp-protocol-version']
  if (typeof version === 'string') kept.set('mcp-protocol-version', version)
  return new Request('http://kontor/mcp', { method: 'POST', headers: kept, body: '{}' })
}

/** A body that is not a message is rejected with a problem, as on other routes; an error of the protocol is a normal response. */
async function send(reply: FastifyReply, answer: Response): Promise<never> {
  if (answer.status >= 400) throw problems.malformed(NO_MESSAGE)
  const text = await answer.text()
  reply.code(answer.status)
  if (text !== '') reply.header('content-type', 'application/json; charset=utf-8')
  return reply.send(text) as never
}

const NO_MESSAGE = 'The body is not a message of a supported version of the Model Context Protocol.'

/** The top level of the response body, as JSON Schema. Nothing is required: results are shortened. */
function resultSchema(app: App, route: string): ResultSchema {
  const declared = app.routeTable.find(({ method, url }) => method === 'GET' && url === route)
  const response = (declared?.options.schema?.response ?? {}) as Record<string, { properties?: Record<string, object> }>
  const properties = Object.entries(response[200]?.properties ?? {}).map(([name, schema]) => [name, outline(schema)])
  return { type: 'object', properties: Object.fromEntries(properties) }
}

/** The type and description of a field, without its parts. Types with alternatives are left open. */
function outline(schema: object): object {
  const { type, description } = schema as { type?: unknown; description?: unknown }
  return { ...(typeof type === 'string' && { type }), ...(typeof description === 'string' && { description }) }
}

type QuerySchema = { properties?: Record<string, Record<string, unknown>>; required?: string[] }

/** The query parameters that the route declares. Those with a default are optional. */
function queryParameters(app: App, route: string): Parameters {
  const declared = app.routeTable.find(({ method, url }) => method === 'GET' && url === route)
  const { properties = {}, required = [] } = (declared?.options.schema?.querystring ?? {}) as QuerySchema
  return {
    properties: Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, plain(schema)])),
    required: required.filter(name => properties[name]?.default === undefined),
  }
}

/** Standard JSON Schema: replaces our own format `timestamp` by a description. */
function plain(schema: Record<string, unknown>): object {
  const { format, description, ...rest } = JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
  if (format !== 'timestamp')
    return { ...rest, ...(format !== undefined && { format }), ...(description !== undefined && { description }) }
  return { ...rest, description: `${description === undefined ? '' : `${description}. `}ISO 8601` }
}
