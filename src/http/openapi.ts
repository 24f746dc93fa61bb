import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import Fastify, { type RouteOptions } from 'fastify'
import type { Scope } from '../domain/tenants/keys.ts'
import { TIME_FORMAT } from '../domain/time.ts'
import { STATUS_CODES } from '../node-http.ts'
import type { App } from './app.ts'
import { type Asset, asset, sendAsset } from './assets.ts'
import { shareParameters, withReferences } from './components.ts'
import { registerGuides } from './guides/routes.ts'
import { type Problem, ProblemBody, problemBody, problems } from './problems.ts'
import { registerSdk } from './sdk/route.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Error statuses of a route in addition to those that follow from its declaration, such as 409. */
    problems?: readonly number[]
  }
  interface FastifyInstance {
    /** Every route declared on this server, in order. */
    routeTable: DeclaredRoute[]
  }
}

type DeclaredRoute = { method: string; url: string; isHidden: boolean; options: RouteOptions }

type Operation = {
  operationId?: string
  description?: string
  parameters?: unknown[]
  requestBody?: unknown
  responses: Record<string, { description: string } | { $ref: string }>
  security?: Record<string, string[]>[]
}
type Document = {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, unknown>; parameters?: object; responses?: object; securitySchemes?: object }
}

type DocumentOptions = { publicUrl: string | null; version: string }

/** For a route's `schema.security`. Routes that declare a scope do not need it. */
export const security = {
  private: [{ privateKey: [] }, { privateKeyHeader: [] }] as Record<string, string[]>[],
  tracking: [{ trackingKey: [] }, { trackingKeyBasic: [] }, { trackingKeyQuery: [] }, { writeKeyHeader: [] }] as Record<
    string,
    string[]
  >[],
  source: [{ sourceToken: [] }] as Record<string, string[]>[],
  admin: [{ adminKey: [] }] as Record<string, string[]>[],
  none: [] as Record<string, string[]>[],
}

const securitySchemes = {
  privateKey: { type: 'http', scheme: 'bearer', description: 'A private key: `private-…`' },
  privateKeyHeader: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'A private key' },
  trackingKey: { type: 'http', scheme: 'bearer', description: 'A tracking key: `trk_…`' },
  trackingKeyBasic: { type: 'http', scheme: 'basic', description: 'A tracking key as user name, no password' },
  trackingKeyQuery: { type: 'apiKey', in: 'query', name: 'key', description: 'A tracking key' },
  writeKeyHeader: { type: 'apiKey', in: 'header', name: 'x-write-key', description: 'A tracking key' },
  sourceToken: { type: 'http', scheme: 'bearer', description: "An inbound source's token: `tok_…`" },
  adminKey: { type: 'http', scheme: 'bearer', description: 'An admin key: `adm_…`' },
} as const

const TAGS = {
  Records: 'Products, contacts and orders, each in the latest version received.',
  Events: 'Send and read events and conversions.',
  'CDP-compatible': 'Send events with the SDKs of Segment, RudderStack and Jitsu.',
  'Inbound webhooks': 'Receive webhooks of shops, billing systems and other senders.',
  Customers: 'Customers, acquisition channels and funnels.',
  Subscriptions: 'Reports about recurring revenue: MRR, movements, retention, cash and recognized revenue.',
  Export: 'Whole tables as files.',
  'Agent tools': 'The Model Context Protocol for agents.',
  'Admin: tenants': 'Tenants, their settings, policies and closed months, and their health.',
  'Admin: users': 'Users and sessions of the console.',
  'Admin: keys': 'Create, limit, rotate and revoke keys.',
  'Admin: sources': 'The senders of webhooks, with their credentials and limits.',
  'Admin: destinations': 'Endpoints, chats and e-mail addresses to which Kontor sends data.',
  'Admin: inbound events': 'Receipts, rejected requests and archived results of webhooks.',
  'Admin: dead letters': 'Entries that were rejected or failed: read, replay and resolve them.',
  'Admin: people': 'Look up, merge, split, export and erase people.',
  'Admin: alerts': 'Alerts and their thresholds.',
  'Admin: audit': 'Every change by a user, a key or the command line.',
} as const

const EXAMPLES: Record<number, Problem> = {
  400: problems.invalid([
    { pointer: '/id', message: 'is required' },
    { pointer: '/sourceUpdatedAt', message: `must be ${TIME_FORMAT}` },
  ]),
  401: problems.unauthorized('missing_credentials', 'This route requires a private key (private-…).'),
  403: problems.insufficientScope('products:read'),
  404: problems.notFound(),
  409: problems.conflict('already_exists', 'The name is already taken.'),
  413: problems.tooLarge(1_048_576),
  415: problems.unsupportedMediaType(),
  429: problems.tooManyRequests(30),
  503: problems.unavailable(),
}

/** Call before any route is declared. The first request builds the document. */
export function registerOpenApi(app: App, options: DocumentOptions): void {
  const table: DeclaredRoute[] = []
  app.decorate('routeTable', table)
  app.addHook('onRoute', route => {
    const isHidden = (route.schema as { hide?: boolean } | undefined)?.hide === true
    for (const method of [route.method].flat()) table.push({ method, url: route.url, isHidden, options: route })
  })

  let file: Promise<Asset> | null = null
  app.get('/openapi.json', { schema: { hide: true } }, async (request, reply) => {
    file ??= documentFile(app, options)
    const headers = { 'access-control-allow-origin': '*', 'cache-control': 'no-cache' }
    return sendAsset(request, reply, await file, headers)
  })
  registerReference(app, options)
  registerGuides(app)
  registerSdk(app)
}

async function documentFile(app: App, options: DocumentOptions): Promise<Asset> {
  const text = Buffer.from(JSON.stringify(await openApiDocument(app, options)))
  return asset('application/json', text, { gzip: await promisify(gzip)(text) })
}

export async function openApiDocument(app: App, options: DocumentOptions): Promise<Document> {
  const document = standardSchema(await describeRoutes(app, options)) as Document
  const used = new Set<number>()
  for (const { method, url, isHidden, options } of app.routeTable) {
    const operation = document.paths[documentedPath(url)]?.[method.toLowerCase()]
    if (!operation || isHidden) continue
    operation.operationId ??= buildOperationId(method, url)
    describeSecurity(operation, options)
    for (const [status, response] of Object.entries(operation.responses))
      if ('description' in response && response.description === 'Default Response')
        response.description = STATUS_CODES[status] ?? 'Response'
    for (const status of problemStatuses(operation, options, url)) {
      operation.responses[status] ??= { $ref: `#/components/responses/problem-${status}` }
      used.add(status)
    }
  }
  const { schemas } = document.components
  document.components.responses = Object.fromEntries([...used].sort().map(status => problemResponse(status)))
  const { paths } = withReferences({ paths: document.paths, problem: ProblemBody }, schemas)
  const names = Object.keys(schemas).sort()
  return {
    ...document,
    paths,
    components: {
      ...document.components,
      schemas: Object.fromEntries(names.map(name => [name, schemas[name]])),
      parameters: shareParameters(paths),
    },
  }
}

/** On a temporary server: loading the package at each start would take 40 ms and 5 MB. */
async function describeRoutes(app: App, { publicUrl, version }: DocumentOptions): Promise<unknown> {
  const { default: swagger } = await import('@fastify/swagger')
  const server = Fastify({ exposeHeadRoutes: false })
  server.setValidatorCompiler(() => () => true)
  server.setSerializerCompiler(() => JSON.stringify)
  await server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Kontor',
        version,
        description: 'Commerce records, events, inbound webhooks and subscription reports.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: publicUrl ?? '/' }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: { securitySchemes },
    },
    convertConstToEnum: false,
  })
  for (const { method, url, isHidden, options } of app.routeTable)
    if (!isHidden && method !== 'HEAD') server.route({ method, url, schema: options.schema, handler: () => {} })
  await server.ready()
  const document = server.swagger()
  await server.close()
  return document
}

/** The path in OpenAPI's notation: {id} for :id. */
export function documentedPath(url: string): string {
  return url.replace(/:(\w+)/g, '{$1}')
}

/** `getProductsById` for GET /v1/products/:id. Client generators use it as the method name. */
function buildOperationId(method: string, url: string): string {
  const words = url.split('/').filter(word => word !== '' && word !== 'v1')
  const named = words.map(word =>
    word.replace(/^:/, 'by-').replace(/(?:^|[-.])(\w)/g, (_, first) => first.toUpperCase()),
  )
  return method.toLowerCase() + named.join('')
}

function describeSecurity(operation: Operation, { config }: RouteOptions): void {
  const scope = config?.scope
  if (scope === undefined) {
    operation.security ??= security.none
    return
  }
  const scopes = [scope].flat() as Scope[]
  operation.security ??= [{ privateKey: scopes }, { privateKeyHeader: scopes }]
  if (scopes.length === 0) return
  const note = `Scope: ${scopes.map(name => `\`${name}\``).join(' or ')}.`
  operation.description = operation.description ? `${operation.description}\n\n${note}` : note
}

function problemStatuses(operation: Operation, { config }: RouteOptions, url: string): number[] {
  const hasBody = operation.requestBody !== undefined
  const isGuarded = (operation.security?.length ?? 0) > 0
  return [
    ...(hasBody || (operation.parameters?.length ?? 0) > 0 ? [400] : []),
    ...(isGuarded ? [401] : []),
    ...(config?.scope === undefined && !isForAdmins(operation) ? [] : [403]),
    ...(url.includes(':') ? [404] : []),
    ...(hasBody ? [413, 415] : []),
    ...(isGuarded || hasBody ? [503] : []),
    ...(config?.problems ?? []),
  ]
}

function isForAdmins({ security }: Operation): boolean {
  return security?.some(scheme => 'adminKey' in scheme) ?? false
}

function problemResponse(status: number): [string, object] {
  const problem = EXAMPLES[status]
  const description = problem?.title ?? STATUS_CODES[status] ?? 'Problem'
  const retryAfter = { 'retry-after': { description: 'Seconds', schema: { type: 'integer' } } }
  const response = {
    description,
    ...(status === 429 || status === 503 ? { headers: retryAfter } : {}),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        ...(problem && { example: problemBody(problem, 'req_3Zk0b1xT9aQe-1c') }),
      },
    },
  }
  return [`problem-${status}`, response]
}

/**
 * The document in the words that client generators know. Our timestamps allow more than RFC 3339, but tools know only
 * `date-time`. A parameter with a default is optional. An enum has a type.
 */
function standardSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(standardSchema)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, standardSchema(inner)])
  const copy = Object.fromEntries(entries) as Record<string, unknown>
  if (copy.format === 'timestamp') copy.format = 'date-time'
  if (copy.in === 'query' && copy.required === true && hasDefault(copy.schema)) copy.required = false
  if (copy.type === undefined && isStrings(copy.enum)) return { type: 'string', ...copy }
  return copy
}

function hasDefault(schema: unknown): boolean {
  return typeof schema === 'object' && schema !== null && 'default' in schema
}

function isStrings(values: unknown): boolean {
  return Array.isArray(values) && values.every(value => typeof value === 'string')
}

type Reference = { page: string; policy: string; script: Asset }

const SCRIPT_PATH = '/docs/scalar.js'
// Without an icon, browsers request /favicon.ico.
const NO_ICON = '<link rel="icon" href="data:," />'

// A sandboxed page has no storage, and the script does not start without one. This replacement lasts as long as the page.
const STORAGE = `for (const name of ['localStorage', 'sessionStorage']) {
  const kept = new Map()
  const value = {
    getItem: key => kept.get(String(key)) ?? null,
    setItem: (key, text) => void kept.set(String(key), String(text)),
    removeItem: key => void kept.delete(String(key)),
    clear: () => kept.clear(),
    key: index => [...kept.keys()][index] ?? null,
    get length() { return kept.size },
  }
  Object.defineProperty(window, name, { value })
}`

// The page connects only to this server: no fonts, proxy, telemetry or assistant.
const configuration = {
  pageTitle: 'Kontor API',
  url: '/openapi.json',
  cdn: SCRIPT_PATH,
  theme: 'default',
  // The scheme of most operations. A key entered there is inserted into their examples.
  authentication: { preferredSecurityScheme: 'privateKey' },
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  // From the sandboxed page, only routes that allow every origin could be called.
  hideTestRequestButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
} as const

/** The API reference at /docs. The first request loads its four megabytes. */
function registerReference(app: App, { publicUrl }: { publicUrl: string | null }): void {
  let loading: Promise<Reference> | null = null
  const load = () => {
    loading ??= loadReference(publicUrl).catch(error => {
      loading = null
      throw error
    })
    return loading
  }

  app.get('/docs', { schema: { hide: true } }, async (_request, reply) => {
    const { page, policy } = await load()
    return reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(page)
  })
  app.get(SCRIPT_PATH, { schema: { hide: true } }, async (request, reply) => {
    const { script } = await load()
    return sendAsset(request, reply, script, { 'cache-control': 'no-cache' })
  })
}

/** The package provides page and script only as routes, so they are read from a temporary server. */
async function loadReference(publicUrl: string | null): Promise<Reference> {
  const { default: scalar } = await import('@scalar/fastify-api-reference')
  const server = Fastify()
  await server.register(scalar, { routePrefix: '/docs', configuration })
  const page = (await server.inject('/docs/')).body.replace('<head>', `<head>${NO_ICON}<script>${STORAGE}</script>`)
  const script = (await server.inject('/docs/js/scalar.js')).rawPayload
  await server.close()

  const inline = page.split('<script type="text/javascript">')[1]?.split('</script>')[0]
  if (inline === undefined) throw new Error('the API reference has no start script')
  const reached = publicUrl ? ` ${new URL(publicUrl).origin}` : ''
  const allowed = [STORAGE, inline].map(script => `'sha256-${hash('sha256', script, 'base64')}'`)
  const policy = [
    // The sandbox has its own origin, so this third-party script (4 MB) cannot read what the console stores in the tab.
    'sandbox allow-scripts allow-popups allow-downloads',
    "default-src 'none'",
    `script-src 'self' ${allowed.join(' ')}`,
    "style-src 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    `connect-src 'self'${reached}`,
    "worker-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  const gzipped = await promisify(gzip)(script)
  return { page, policy, script: asset('text/javascript; charset=utf-8', script, { gzip: gzipped }) }
}
