// Access control: every route with every kind of credential, in every place of a request that can hold one.
// A new route fails here until this table defines who may use it.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openConsoleSessions } from '../../src/admin/console-sessions.ts'
import { ROLES, type Role, SCOPES, type Scope } from '../../src/domain/tenants/keys.ts'
import { isLong } from '../long.ts'
import { startServer } from '../server.ts'

type Who =
  | { key: 'private'; scopes: readonly Scope[] }
  | { key: 'tracking'; optional?: true }
  | { key: 'admin'; role: Role; onlyOwn?: true }
  | { key: 'source' }
  | { key: 'session' }
  | { key: 'sign-in' } // needs a password, a key or an invitation in its body
  | { key: 'none'; needs?: 'provider' }

const unauthenticated: Who = { key: 'none' }
const tracking: Who = { key: 'tracking' }
const privately = (...scopes: Scope[]): Who => ({ key: 'private', scopes })
const admins = (role: Role): Extract<Who, { key: 'admin' }> => ({ key: 'admin', role })

const WHO: Record<string, Who> = {
  'GET /': unauthenticated,
  'GET /openapi.json': unauthenticated,
  'GET /docs': unauthenticated,
  'GET /docs/scalar.js': unauthenticated,
  'GET /docs/guides': unauthenticated,
  'GET /docs/guides/style.css': unauthenticated,
  'GET /docs/guides/:name': unauthenticated,
  'GET /docs/guides/pictures/:name': unauthenticated,
  'GET /k.js': unauthenticated,
  'GET /sdk/js.tgz': unauthenticated,
  'GET /console': unauthenticated,
  'GET /console/:version/*': unauthenticated,
  'GET /console/oidc/start': { key: 'none', needs: 'provider' },
  'GET /console/oidc/callback': unauthenticated, // with the cookie of its own sign-in: test/console/sign-in.test.ts
  'GET /console/session': unauthenticated, // says who is signed in: test/console/accounts.test.ts
  'POST /console/session': { key: 'sign-in' },
  'POST /console/invitation': { key: 'sign-in' },
  'POST /console/invitation/accept': { key: 'sign-in' },
  'POST /console/sign-out': { key: 'session' },
  'GET /v1/projects/:writeKey/settings': unauthenticated,

  ...recordRoutes('products'),
  ...recordRoutes('contacts'),
  ...recordRoutes('orders'),
  'GET /v1/operations/:operationId': privately(...SCOPES), // and the scope of its record: test/records/operations.test.ts
  'GET /v1/tenant': privately(...SCOPES),
  'GET /v1/contact-names': privately('contacts:read'),
  'GET /v1/search': privately('products:read', 'contacts:read', 'orders:read', 'events:read'), // finds only what the scopes allow: test/events/people.test.ts
  'GET /v1/events': privately('events:read'),
  'GET /v1/events/:id': privately('events:read'),
  'GET /v1/events/live': privately('events:read'),
  'GET /v1/events/lookup': privately('events:read'),
  'GET /v1/events/series': privately('events:read'),
  'GET /v1/events/visitors': privately('events:read'),
  'GET /v1/dead-letters': privately('events:read'),
  'GET /v1/customers': privately('contacts:read'), // amounts need more: test/customers/customers.test.ts
  'GET /v1/channels': privately('events:read'), // the same: test/customers/channels.test.ts
  'GET /v1/funnel': privately('events:read'),
  'GET /v1/conversions': privately('conversions:read'),
  'GET /v1/conversions/:id': privately('conversions:read'),
  'GET /v1/conversions/series': privately('conversions:read'),
  'GET /v1/sources/:sourceConfigId/requests': privately('events:read'), // and conversions:read: test/inbound/requests.test.ts
  'GET /v1/subscriptions/overview': privately('subscriptions:read'),
  'GET /v1/subscriptions/attention': privately('subscriptions:read'),
  'GET /v1/subscriptions/acquisition': privately('subscriptions:read'),
  'GET /v1/subscriptions/account': privately('subscriptions:read'),
  'GET /v1/subscriptions/movements': privately('subscriptions:read'),
  'GET /v1/subscriptions/retention': privately('subscriptions:read'),
  'GET /v1/subscriptions/history': privately('subscriptions:read'),
  'GET /v1/subscriptions/books': privately('subscriptions:read'),
  'GET /v1/subscriptions/breakdown': privately('subscriptions:read'),
  'GET /v1/subscriptions/cash': privately('subscriptions:read'),
  'GET /v1/subscriptions/consolidated': privately('subscriptions:read'),
  'GET /v1/subscriptions/exclusions': privately('subscriptions:read'),
  'GET /v1/subscriptions/trials': privately('subscriptions:read'),
  'GET /v1/subscriptions/dunning': privately('subscriptions:read'),
  'GET /v1/subscriptions/cash/facts': privately('subscriptions:read'),
  'GET /v1/subscriptions/forecast': privately('subscriptions:read'),
  'GET /v1/subscriptions/churn-reasons': privately('subscriptions:read'),
  'GET /v1/subscriptions/revenue': privately('subscriptions:read'),
  'GET /v1/subscriptions/revenue/invoices': privately('subscriptions:read'),

  'GET /v1/export/products': privately('products:read'),
  'GET /v1/export/contacts': privately('contacts:read'),
  'GET /v1/export/orders': privately('orders:read'),
  'GET /v1/export/events': privately('events:read'),
  'GET /v1/export/conversions': privately('conversions:read'),
  'GET /v1/export/subscriptions': privately('subscriptions:read'),
  'GET /v1/export/movements': privately('subscriptions:read'),
  'GET /v1/export/customers': privately('contacts:read'),

  'POST /mcp': privately(...SCOPES), // and the scopes of each tool: test/http/mcp.test.ts

  'POST /v1/track': tracking,
  'POST /v1/identify': tracking,
  'POST /v1/page': tracking,
  'POST /v1/screen': tracking,
  'POST /v1/group': tracking,
  'POST /v1/alias': tracking,
  'POST /v1/batch': tracking,
  'POST /v1/import': tracking,
  'POST /v1/t': tracking,
  'POST /v1/i': tracking,
  'POST /v1/p': tracking,
  'POST /v1/s': tracking,
  'POST /v1/g': tracking,
  'POST /v1/a': tracking,
  'POST /v1/b': tracking,
  'POST /beacon/v1/batch': tracking,
  'POST /api/s/:type': tracking,
  'POST /api/s/s2s/:type': tracking,
  'POST /v1/m': { key: 'tracking', optional: true }, // metrics of SDKs, which are not stored

  'POST /ingest/inbound/:sourceConfigId': { key: 'source' },

  'GET /admin/v1/tenants': admins('viewer'),
  'POST /admin/v1/tenants': admins('admin'),
  'GET /admin/v1/tenants/:id': admins('viewer'),
  'PATCH /admin/v1/tenants/:id': admins('admin'),
  'GET /admin/v1/tenants/:id/health': admins('viewer'),
  'GET /admin/v1/tenants/:id/issues': admins('viewer'),
  'GET /admin/v1/tenants/:id/policy': admins('viewer'),
  'GET /admin/v1/tenants/:id/accounts/merged': admins('viewer'),
  'POST /admin/v1/tenants/:id/accounts/merge': admins('admin'),
  'POST /admin/v1/tenants/:id/accounts/unmerge': admins('admin'),
  'GET /admin/v1/tenants/:id/export/products': admins('admin'),
  'GET /admin/v1/tenants/:id/export/contacts': admins('admin'),
  'GET /admin/v1/tenants/:id/export/orders': admins('admin'),
  'GET /admin/v1/tenants/:id/export/events': admins('admin'),
  'GET /admin/v1/tenants/:id/export/conversions': admins('admin'),
  'GET /admin/v1/tenants/:id/export/subscriptions': admins('admin'),
  'GET /admin/v1/tenants/:id/export/movements': admins('admin'),
  'GET /admin/v1/tenants/:id/books': admins('viewer'),
  'POST /admin/v1/tenants/:id/books/close': admins('admin'),
  'POST /admin/v1/tenants/:id/rates': admins('admin'),
  'POST /admin/v1/tenants/:id/books/reopen': admins('admin'),
  'PUT /admin/v1/tenants/:id/policy': admins('admin'),
  'GET /admin/v1/users': admins('viewer'),
  'POST /admin/v1/users': admins('admin'),
  'POST /admin/v1/users/:id/disable': admins('admin'),
  'POST /admin/v1/users/:id/enable': admins('admin'),
  'POST /admin/v1/users/:id/reset': admins('admin'),
  'GET /admin/v1/sessions': admins('viewer'), // below admin only their own: test/console/accounts.test.ts
  'POST /admin/v1/sessions/:id/end': { ...admins('viewer'), onlyOwn: true },
  'GET /admin/v1/keys': admins('viewer'),
  'POST /admin/v1/keys': admins('viewer'), // a viewer can create only read-only keys for a day: test/admin/keys.test.ts
  'POST /admin/v1/keys/:id/revoke': { ...admins('viewer'), onlyOwn: true }, // a viewer can revoke only keys that it created
  'PATCH /admin/v1/keys/:id': admins('admin'),
  'POST /admin/v1/keys/:id/rotate': admins('admin'),
  'GET /admin/v1/sources': admins('viewer'),
  'POST /admin/v1/sources': admins('admin'),
  'GET /admin/v1/sources/:id': admins('viewer'),
  'PATCH /admin/v1/sources/:id': admins('admin'),
  'DELETE /admin/v1/sources/:id': admins('admin'),
  'POST /admin/v1/sources/:id/rotate': admins('admin'),
  'POST /admin/v1/sources/:id/enable': admins('operator'),
  'POST /admin/v1/sources/:id/disable': admins('operator'),
  'POST /admin/v1/sources/:id/test': admins('operator'),
  'GET /admin/v1/destinations': admins('viewer'),
  'POST /admin/v1/destinations': admins('admin'),
  'GET /admin/v1/destinations/:id': admins('viewer'),
  'PATCH /admin/v1/destinations/:id': admins('admin'),
  'DELETE /admin/v1/destinations/:id': admins('admin'),
  'POST /admin/v1/destinations/:id/rotate': admins('admin'),
  'POST /admin/v1/destinations/:id/enable': admins('operator'),
  'POST /admin/v1/destinations/:id/disable': admins('operator'),
  'POST /admin/v1/destinations/:id/test': admins('operator'),
  'POST /admin/v1/destinations/:id/retry': admins('operator'),
  'GET /admin/v1/destinations/:id/message': admins('viewer'),
  'POST /admin/v1/destinations/:id/replay': admins('operator'),
  'GET /admin/v1/destinations/:id/deliveries': admins('viewer'),
  'GET /admin/v1/destinations/:id/activity': admins('viewer'),
  'GET /admin/v1/sources/:id/activity': admins('viewer'),
  'GET /admin/v1/receipts': admins('viewer'),
  'GET /admin/v1/archive/:id': admins('viewer'),
  'GET /admin/v1/overflow': admins('viewer'),
  'GET /admin/v1/rejections': admins('viewer'),
  'GET /admin/v1/events/:id/request': admins('viewer'),
  'GET /admin/v1/dead-letters': admins('viewer'),
  'GET /admin/v1/dead-letters/:id': admins('viewer'),
  'POST /admin/v1/dead-letters/resolve': admins('admin'),
  'POST /admin/v1/dead-letters/replay': admins('operator'),
  'POST /admin/v1/erasures': admins('admin'),
  'GET /admin/v1/erasures': admins('viewer'),
  'GET /admin/v1/erasures/:id': admins('viewer'),
  'GET /admin/v1/suppressions': admins('viewer'),
  'GET /admin/v1/alerts': admins('viewer'),
  'GET /admin/v1/tenants/:id/alert-rules': admins('viewer'),
  'PATCH /admin/v1/tenants/:id/alert-rules': admins('admin'),
  'GET /admin/v1/tenants/:id/alert-values': admins('viewer'),
  'POST /admin/v1/tenants/:id/alert-test': admins('operator'),
  'GET /admin/v1/tenants/:id/digest': admins('viewer'),
  'PATCH /admin/v1/tenants/:id/digest': admins('admin'),
  'GET /admin/v1/tenants/:id/digest/preview': admins('viewer'),
  'DELETE /admin/v1/suppressions/:id': admins('admin'),
  'POST /admin/v1/purges': admins('admin'),
  'GET /admin/v1/purges/:id': admins('viewer'),
  'GET /admin/v1/people/:id': admins('viewer'),
  'GET /admin/v1/people/:id/timeline': admins('viewer'),
  'GET /admin/v1/people/:id/export': admins('admin'),
  'POST /admin/v1/people/:id/merge': admins('admin'),
  'POST /admin/v1/people/:id/split': admins('admin'),
  'POST /admin/v1/people/:id/verify': admins('admin'),
  'GET /admin/v1/audit': admins('viewer'),
}

function recordRoutes(type: 'products' | 'contacts' | 'orders'): Record<string, Who> {
  return {
    [`POST /v1/${type}`]: privately(`${type}:write`),
    [`DELETE /v1/${type}`]: privately(`${type}:write`),
    [`GET /v1/${type}/:id`]: privately(`${type}:read`),
    [`GET /v1/${type}`]: privately(`${type}:read`),
    [`POST /v1/${type}/batch`]: privately(`${type}:write`),
  }
}

type Credential = { name: string; secret: string; is: Who | 'bad'; ofTenant?: string; isPerson?: true }

const HOME = 'https://kontor.example'
const ISSUER = 'http://127.0.0.1:1' // unreachable: sessions are created directly
const server = await startServer({
  KONTOR_FAILED_AUTH_LIMIT: 'off',
  KONTOR_PUBLIC_URL: HOME,
  KONTOR_OIDC_ISSUER: ISSUER,
  KONTOR_OIDC_CLIENT_ID: 'kontor',
  KONTOR_OIDC_CLIENT_SECRET: 'not-a-real-secret',
  KONTOR_OIDC_ROLES: 'viewer=viewer',
})
after(server.close)
const neighbor = await server.anotherTenant('neighbor')
const MARK = 'only-the-neighbor-knows'

/** Ids that an unauthenticated caller may have obtained. */
const ids = await fillNeighbor()
const credentials = await createCredentials()

async function fillNeighbor(): Promise<Record<string, string>> {
  const post = (path: string, key: string, body: object) =>
    server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
  const write = await post('/v1/products', neighbor.privateKey, {
    entityType: 'product',
    id: MARK,
    data: { sku: MARK },
  })
  await post('/v1/contacts', neighbor.privateKey, {
    entityType: 'contact',
    id: MARK,
    data: { email: `${MARK}@example.com`, name: MARK },
  })
  await post('/v1/orders', neighbor.privateKey, {
    entityType: 'order',
    id: MARK,
    data: { total: 1, currency: 'EUR', contactId: MARK },
  })
  await post('/v1/track', neighbor.trackingKey, { event_type: MARK, event_id: MARK, visitor: MARK })
  const source = await server.admin.sources.create({ tenant: neighbor.id, type: 'webhook', name: MARK })
  const [key] = await server.admin.keys.list(neighbor.id)
  await server.settled()
  const { body } = await server.request('/v1/events', { key: neighbor.privateKey })
  return {
    id: MARK,
    operationId: write.body.operationId,
    event: body.results[0].id,
    source: source.id,
    key: key!.id,
    tenant: neighbor.id,
  }
}

async function createCredentials(): Promise<Credential[]> {
  const { keys, sources } = server.admin
  const tenant = server.tenant.id
  const created: Credential[] = [
    { name: 'nothing', secret: '', is: 'bad' },
    { name: 'an unknown key', secret: 'private-0000000000000000000000000000', is: 'bad' },
    { name: 'a tracking key', secret: server.tenant.trackingKey, is: tracking },
    {
      name: 'a server’s tracking key',
      secret: (await keys.create({ tenant, kind: 'tracking', server: true })).key,
      is: tracking,
    },
    {
      name: 'a source’s token',
      secret: (await sources.create({ tenant, type: 'webhook' })).token!,
      is: { key: 'source' },
    },
    { name: 'a private key', secret: server.tenant.privateKey, is: privately(...SCOPES) },
  ]
  for (const scope of SCOPES)
    created.push({
      name: `a private key for ${scope}`,
      secret: (await keys.create({ tenant, kind: 'private', scopes: [scope] })).key,
      is: privately(scope),
    })
  for (const role of ROLES) {
    created.push({
      name: `an admin key (${role})`,
      secret: (await keys.create({ kind: 'admin', role })).key,
      is: admins(role),
    })
    created.push({
      name: `an admin key (${role}) of the tenant`,
      secret: (await keys.create({ kind: 'admin', role, tenant })).key,
      is: admins(role),
      ofTenant: tenant,
    })
  }
  for (const role of ROLES) {
    const sessions = openConsoleSessions({
      pool: server.pool,
      provider: { issuer: ISSUER, roles: [{ value: role, role, tenant: role === 'operator' ? tenant : null }] },
    })
    const token = await sessions.begin({ subject: role, name: role, values: [role] }, { ip: null, requestId: null })
    created.push({
      name: `a person (${role})`,
      secret: token!,
      is: admins(role),
      isPerson: true,
      ...(role === 'operator' && { ofTenant: tenant }),
    })
  }
  for (const kind of ['private', 'tracking', 'admin'] as const) {
    const of = kind === 'admin' ? {} : { tenant }
    const revoked = await keys.create({ ...of, kind })
    await keys.revoke(revoked.id)
    created.push({ name: `a revoked ${kind} key`, secret: revoked.key, is: 'bad' })
    const expired = await keys.create({ ...of, kind, expires_at: '2999-01-01' })
    await server.pool.query(`update api_keys set expires_at = now() - interval '1 second' where id = $1`, [expired.id])
    created.push({ name: `an expired ${kind} key`, secret: expired.key, is: 'bad' })
  }
  return created
}

/** The places that can hold a credential. */
const PLACES: Record<string, (secret: string) => { headers?: Record<string, string>; query?: string }> = {
  bearer: secret => ({ headers: { authorization: `Bearer ${secret}` } }),
  basic: secret => ({ headers: { authorization: `Basic ${Buffer.from(`${secret}:`).toString('base64')}` } }),
  'x-api-key': secret => ({ headers: { 'x-api-key': secret } }),
  'x-write-key': secret => ({ headers: { 'x-write-key': secret } }),
  cookie: secret => ({
    headers: { cookie: `__Host-kontor_session=${secret}`, 'x-kontor-console': '1', origin: HOME },
  }),
  query: secret => ({ query: `key=${secret}&writeKey=${secret}&token=${secret}` }),
}

const routes = server.http.routeTable.filter(({ method }) => method !== 'HEAD' && method !== 'OPTIONS')

test('the access table covers every route, and no route that does not exist', () => {
  const names = routes.map(({ method, url }) => `${method} ${url}`)
  assert.deepEqual(
    names.filter(name => !(name in WHO)),
    [],
    'add these routes to the access table',
  )
  assert.deepEqual(
    Object.keys(WHO).filter(name => !names.includes(name)),
    [],
  )
})

test('each route accepts exactly its intended credentials, and no caller sees data of a neighbor', async () => {
  const violations: string[] = []
  let sampled = 0
  for (const { method, url } of routes) {
    const who = WHO[`${method} ${url}`]
    if (!who) continue
    for (const credential of credentials)
      for (const [place, put] of Object.entries(PLACES)) {
        if (!isWorthTrying(who, credential, place)) continue
        const { headers = {}, query = '' } = credential.secret === '' ? {} : put(credential.secret)
        // Public routes, and unusual places on closed routes, are sampled (with a step that is no multiple of the places); CI tries all.
        const isOdd =
          who.key === 'none' || who.key === 'sign-in' || (place !== 'bearer' && opens(who, credential, place) === 401)
        if (!isLong && isOdd && credential.secret !== '' && ++sampled % 19 !== 0) continue
        // All ids of the neighbor if the route accepts the credential; one if it does not, or if the user may see all tenants.
        const paths = pathsOf(url)
        const isOpen = who.key === 'none' || who.key === 'sign-in' || opens(who, credential, place) === true
        const isForAll = credential.isPerson && credential.ofTenant === undefined
        for (const path of isOpen && !isForAll ? paths : paths.slice(0, 1)) {
          const answer = await server.http.inject({
            method: method as 'GET',
            url: `${path}${query && `${path.includes('?') ? '&' : '?'}${query}`}`,
            headers: { ...headers, ...(method !== 'GET' && { 'content-type': 'application/json' }) },
            ...(method !== 'GET' && { payload: '{}' }),
          })
          const violation = findViolation(who, credential, place, answer)
          if (violation) violations.push(`${method} ${path} with ${credential.name} (${place}): ${violation}`)
        }
      }
  }
  assert.deepEqual(violations.slice(0, 20), [], `${violations.length} violations`)
})

/** An empty credential is tried in one place. Session tokens and keys are tried in each other's places, but not in every combination. */
function isWorthTrying(who: Who, { name, secret, isPerson }: Credential, place: string): boolean {
  // Connecting to the unreachable provider takes time, so this is tried once.
  if (who.key === 'none' && who.needs) return secret === ''
  if (secret === '') return place === 'bearer'
  if (isPerson) return place === 'cookie' || place === 'bearer'
  return place !== 'cookie' || name === 'an admin key (admin)'
}

/** The path with ids of the neighbor. */
function pathsOf(url: string): string[] {
  // A stream that would run for ten minutes is only started.
  if (!/[:*]/.test(url)) return [url === '/v1/events/live' ? `${url}?seconds=0` : url]
  const values = url.startsWith('/console/') ? ['x'] : [...new Set(Object.values(ids))]
  return values.map(value => url.replaceAll(/:\w+|\*/g, value))
}

function findViolation(
  who: Who,
  credential: Credential,
  place: string,
  answer: { statusCode: number; body: string },
): string | null {
  const { statusCode, body } = answer
  if (statusCode >= 500 && !(who.key === 'none' && who.needs && statusCode === 503)) return `${statusCode}`
  if (who.key === 'sign-in') return statusCode < 400 ? `${statusCode} without a password` : null
  if (who.key === 'none') return statusCode === 401 || statusCode === 403 ? `${statusCode} on a public route` : null
  // Admin keys without a tenant may see every tenant.
  const seesAll =
    credential.is !== 'bad' && credential.is.key === 'admin' && credential.ofTenant === undefined && who.key === 'admin'
  const shown = body.replaceAll(/"(instance|detail|message)":"[^"]*"/g, '')
  if (!seesAll && statusCode < 400 && shown.includes(MARK)) return `shows data of the neighbor: ${body.slice(0, 200)}`
  const isOpen = opens(who, credential, place)
  if (isOpen === true && statusCode === 401) return '401 for an intended credential'
  if (isOpen === 401 && statusCode !== 401 && !(who.key === 'source' && statusCode === 404))
    return `${statusCode} instead of 401`
  if (isOpen === 403 && statusCode !== 403) return `${statusCode} instead of 403`
  const isOnlyOwn = who.key === 'admin' && who.onlyOwn
  if (isOpen === true && statusCode === 403 && !isOnlyOwn) return '403 for an intended credential'
  return null
}

const PLACES_OF: Record<Exclude<Who['key'], 'none' | 'session' | 'sign-in'>, string[]> = {
  private: ['bearer', 'x-api-key'],
  admin: ['bearer', 'x-api-key'],
  tracking: ['bearer', 'basic', 'x-write-key', 'query'],
  source: [],
}

function opens(
  who: Exclude<Who, { key: 'none' | 'sign-in' }>,
  { is, secret, isPerson }: Credential,
  place: string,
): true | 401 | 403 {
  const isNothing = secret === ''
  if (who.key === 'tracking' && who.optional && (isNothing || !PLACES_OF.tracking.includes(place))) return true
  if (who.key === 'session') return isPerson && place === 'cookie' ? true : 401
  const places = isPerson ? ['cookie'] : PLACES_OF[who.key]
  if (is === 'bad' || is.key !== who.key || !places.includes(place)) return 401
  if (who.key === 'private' && is.key === 'private')
    return who.scopes.some(scope => is.scopes.includes(scope)) ? true : 403
  if (who.key === 'admin' && is.key === 'admin') return ROLES.indexOf(is.role) >= ROLES.indexOf(who.role) ? true : 403
  return true
}
