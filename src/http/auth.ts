import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Actor, roleMessage } from '../admin/actor.ts'
import type { ConsoleSession } from '../admin/console-sessions.ts'
import { isAllowed } from '../domain/tenants/addresses.ts'
import {
  allowsOrigin,
  hasRole,
  type KeyKind,
  NO_LIMITS,
  type Role,
  SCOPES,
  type Scope,
} from '../domain/tenants/keys.ts'
import { parseTenantId } from '../domain/tenants/tenants.ts'
import type { Directory } from '../store/tenants/directory.ts'
import type { KeyOfTenant } from '../store/tenants/keys.ts'
import { Problem, problems } from './problems.ts'

/** The caller of the admin API. */
type Operator = Pick<Actor, 'name' | 'role' | 'tenantId'>

/** The caller of the data API or the event API. */
export type Caller = { tenantId: number; key: KeyOfTenant }

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The scope that a private key needs; of several, one is enough. Required on routes with `authenticatePrivate`: with
     * `[]`, the handler decides (see `requireScope`).
     */
    scope?: Scope | readonly Scope[]
    /** The role that an admin key or a person needs. Default: viewer for reads, admin for everything else. */
    role?: Role
  }
  interface FastifyRequest {
    /** Set by `authenticatePrivate` and `authenticateTracking`. */
    caller: Caller
    /** Set by `authenticateAdmin`: a key, or a person who is signed in to the console. */
    operator: Operator
  }
}

type Deps = { directory: Pick<Directory, 'key' | 'noteUse'>; now: () => Date }
type Done = (error?: Error) => void
type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: Done) => void

const KINDS: Record<KeyKind, string> = {
  private: 'a private key (private-…)',
  tracking: 'a tracking key (trk_…)',
  admin: 'an admin key (adm_…)',
}

type FindSession = (request: FastifyRequest) => Promise<ConsoleSession> | null

/** The tenant that the console reads. */
const TENANT_HEADER = 'x-kontor-tenant'

/**
 * For the data API: `Authorization: Bearer` or `x-api-key`, and the scope that the route declares. The console reads with its cookie and
 * the header `x-kontor-tenant`.
 */
export function authenticatePrivate(deps: Deps & { sessionOf?: FindSession | null }): OnRequest {
  return (request, _reply, done) => {
    const { scope } = request.routeOptions.config
    if (scope === undefined) return done(new Error(`${request.routeOptions.url} declares no scope`))
    const tenant = request.raw.headers[TENANT_HEADER]
    const session = typeof tenant === 'string' ? deps.sessionOf?.(request) : null
    if (session) {
      session.then(
        found => done(readAs(request, found, tenant as string)),
        error => done(error instanceof Problem ? error : problems.unavailable(undefined, undefined, error)),
      )
      return
    }
    const secret = bearerOrApiKey(request.raw.headers, 'private')
    if (secret instanceof Problem) return done(secret)
    admit(deps, request, 'private', secret, done, key => {
      if (!isAllowed(key.allowedAddresses, request.ip)) return problems.addressNotAllowed(request.ip)
      if (!hasScope(key, scope)) return problems.insufficientScope(scope)
      request.caller = toCaller(key)
    })
  }
}

/**
 * For the event API. With `optional`, a request without any credential passes and `request.caller` stays null: the key
 * may be in the body, where the handler finds it and calls `trackingCaller`.
 */
export function authenticateTracking(deps: Deps & { optional?: boolean }): OnRequest {
  return (request, _reply, done) => {
    // browsers send preflights without credentials
    if (request.method === 'OPTIONS') return done()
    const secret = trackingSecret(request)
    if (secret === null) return done(deps.optional ? undefined : missing('tracking'))
    admit(deps, request, 'tracking', secret, done, key => {
      const refusal = originRefusal(key, request)
      if (refusal) return refusal
      request.caller = toCaller(key)
    })
  }
}

/** A tracking key may allow only certain origins. Browsers send the origin of the page. */
export function originRefusal(key: KeyOfTenant, request: FastifyRequest): Problem | undefined {
  if (allowsOrigin(key.limits, request.raw.headers.origin)) return undefined
  return problems.forbidden(
    'origin_not_allowed',
    'This key does not allow this origin. Add the origin to the key, or use another key.',
  )
}

/** Authenticates a tracking key that was found in the body of the request. */
export type TrackingCaller = (secret: string, request: FastifyRequest) => Caller | Promise<Caller>

/** Throws or rejects with a Problem. Returns synchronously if the key is cached. */
export function trackingCaller(deps: Deps): TrackingCaller {
  return (secret, request) => {
    const settle = (found: KeyOfTenant | null) => {
      request.rejectedKey = found
      const caller = toCaller(accept(deps, 'tracking', found))
      request.rejectedKey = null
      return caller
    }
    const key = lookUp(deps, beforeColon(secret))
    return key instanceof Promise ? key.then(settle) : settle(key)
  }
}

/**
 * For the admin API: `Authorization: Bearer` or `x-api-key`; without them, the cookie of the console, which `sessionOf`
 * reads if sign-in is configured.
 */
export function authenticateAdmin(deps: Deps & { sessionOf?: FindSession | null }): OnRequest {
  return (request, _reply, done) => {
    const session = deps.sessionOf?.(request)
    if (session) {
      session.then(
        ({ actor, role, tenantId }) => done(operate(request, { name: actor, role, tenantId })),
        error => done(error instanceof Problem ? error : problems.unavailable(undefined, undefined, error)),
      )
      return
    }
    const secret = bearerOrApiKey(request.raw.headers, 'admin')
    if (secret instanceof Problem) return done(secret)
    admit(deps, request, 'admin', secret, done, key => {
      if (!isAllowed(key.allowedAddresses, request.ip)) return problems.addressNotAllowed(request.ip)
      return operate(request, { name: key.id, role: key.role ?? 'viewer', tenantId: key.tenantId })
    })
  }
}

/** A session reads everything of the tenants it may see, and writes nothing. */
function readAs(request: FastifyRequest, session: ConsoleSession, tenant: string): Problem | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return problems.forbidden('read_only', 'A console session can only read this API. To write, use a private key.')
  const tenantId = parseTenantId(tenant)
  if (tenantId === null || (session.tenantId !== null && session.tenantId !== tenantId))
    return problems.unknown('tenant', tenant, 'tenant_not_found')
  const { actor: id, createdAt, expiresAt } = session
  const rights = { kind: 'private' as const, scopes: READ_SCOPES, server: false, role: null, limits: NO_LIMITS }
  const dates = { createdAt, expiresAt, revokedAt: null, lastUsedAt: null }
  // A session sends no events, so its key has no number.
  const key = {
    id,
    number: 0,
    tenantId,
    hint: '',
    name: null,
    ...rights,
    allowedAddresses: [],
    createdBy: id,
    ...dates,
  }
  request.caller = { tenantId, key: { ...key, eventsFloorDays: null, ipAddresses: 'keep' } }
  request.isAuthenticated = true
}

const READ_SCOPES = SCOPES.filter(scope => scope.endsWith(':read'))

function operate(request: FastifyRequest, operator: Operator): Problem | undefined {
  const needed = roleFor(request)
  if (!hasRole(operator.role, needed))
    return problems.forbidden('insufficient_role', roleMessage(operator.role, needed))
  request.operator = operator
  request.isAuthenticated = true
}

function roleFor({ method, routeOptions: { config } }: FastifyRequest): Role {
  return config.role ?? (method === 'GET' || method === 'HEAD' ? 'viewer' : 'admin')
}

function hasScope(key: KeyOfTenant, scope: Scope | readonly Scope[]): boolean {
  if (typeof scope === 'string') return key.scopes.includes(scope)
  return scope.length === 0 || scope.some(name => key.scopes.includes(name))
}

/** For handlers whose required scope depends on the request. */
export function requireScope(caller: Caller, scope: Scope | readonly Scope[]): void {
  if (!hasScope(caller.key, scope)) throw problems.insufficientScope(scope)
}

/** The token of `Authorization: Bearer`, or null. */
export function bearerToken(headers: IncomingHttpHeaders): string | null {
  const { authorization } = headers
  if (authorization === undefined) return null
  // the usual spelling, without a regular expression
  if (authorization.startsWith('Bearer ')) return authorization.slice(7).trim() || null
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? null
}

function bearerOrApiKey(headers: IncomingHttpHeaders, kind: KeyKind): string | Problem {
  const { authorization, 'x-api-key': header } = headers
  const apiKey = typeof header === 'string' ? header.trim() : undefined
  if (authorization === undefined) return apiKey || missing(kind)
  const token = bearerToken(headers)
  if (apiKey !== undefined && apiKey !== token)
    return problems.unauthorized(
      'conflicting_credentials',
      'The headers Authorization and x-api-key contain different keys. Send only one of them.',
    )
  if (token !== null) return token
  return problems.unauthorized(
    'invalid_credentials',
    `The header Authorization must be "Bearer" followed by ${KINDS[kind]}.`,
  )
}

function trackingSecret(request: FastifyRequest): string | null {
  const { headers } = request.raw
  const bearer = bearerToken(headers)
  if (bearer !== null) return bearer
  const basic = headers.authorization && /^basic +(\S+) *$/i.exec(headers.authorization)?.[1]
  if (basic) return beforeColon(Buffer.from(basic, 'base64').toString())
  const writeKey = headers['x-write-key']
  if (typeof writeKey === 'string' && writeKey !== '') return beforeColon(writeKey.trim())
  const query = request.query as Record<string, unknown>
  if (typeof query.key === 'string' && query.key !== '') return query.key
  return typeof query.writeKey === 'string' && query.writeKey !== '' ? beforeColon(query.writeKey) : null
}

/** The key of `key:secret`, or of Basic credentials `key:`. */
function beforeColon(text: string): string {
  const colon = text.indexOf(':')
  return colon < 0 ? text : text.slice(0, colon)
}

/** Calls `use` with the key, synchronously if it is cached. A Problem that `use` returns is the response. */
function admit(
  deps: Deps,
  request: FastifyRequest,
  kind: KeyKind,
  secret: string,
  done: Done,
  use: (key: KeyOfTenant) => Problem | undefined,
) {
  const settle = (found: KeyOfTenant | null) => {
    let refusal: Error | undefined
    try {
      refusal = use(accept(deps, kind, found))
      request.isAuthenticated = refusal === undefined
    } catch (error) {
      refusal = error as Error
    }
    if (refusal !== undefined) request.rejectedKey = found
    done(refusal)
  }
  const key = lookUp(deps, secret)
  if (key instanceof Promise) key.then(settle, done)
  else settle(key)
}

/** A failed look-up does not mean that the key is invalid: 503, never 401, because SDKs drop events after a 401. */
function lookUp({ directory }: Deps, secret: string): KeyOfTenant | null | Promise<KeyOfTenant | null> {
  try {
    const key = directory.key(secret)
    return key instanceof Promise
      ? key.catch(error => {
          throw problems.unavailable(undefined, undefined, error)
        })
      : key
  } catch (error) {
    throw problems.unavailable(undefined, undefined, error)
  }
}

function accept({ directory, now }: Deps, kind: KeyKind, key: KeyOfTenant | null): KeyOfTenant {
  if (key === null)
    throw problems.unauthorized(
      'invalid_credentials',
      `Unknown key. This route requires ${KINDS[kind]}. ${howToCreate(kind)}`,
    )
  if (key.kind !== kind)
    throw problems.unauthorized(
      'wrong_key_kind',
      `This route requires ${KINDS[kind]}, but the request has ${KINDS[key.kind]}. ${howToCreate(kind)}`,
    )
  const at = now()
  if (key.revokedAt !== null) throw problems.unauthorized('key_revoked', 'This key was revoked. Use another key.')
  if (key.expiresAt !== null && key.expiresAt <= at)
    throw problems.unauthorized('key_expired', 'This key has expired. Use another key.')
  directory.noteUse(key, at)
  return key
}

function toCaller(key: KeyOfTenant): Caller {
  if (key.tenantId === null) throw new Error(`key ${key.id} belongs to no tenant`)
  return { tenantId: key.tenantId, key }
}

function missing(kind: KeyKind): Problem {
  const how =
    kind === 'tracking'
      ? 'in the header "Authorization: Bearer <key>" or the query parameter "key"'
      : 'in the header "Authorization: Bearer <key>" or "x-api-key: <key>"'
  return problems.unauthorized(
    'missing_credentials',
    `This route requires ${KINDS[kind]}. Send it ${how}. ${howToCreate(kind)}`,
  )
}

function howToCreate(kind: KeyKind): string {
  return `To create ${kind === 'admin' ? 'an' : 'a'} ${kind} key, run \`kontor key create --kind ${kind}\`.`
}
