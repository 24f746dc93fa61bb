import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ConsoleSessions, SESSION_MS } from '../../admin/console-sessions.ts'
import { publicTenantId } from '../../domain/tenants/tenants.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { Problem, problems } from '../problems.ts'
import { cookie, type FindSession, requireOwnPage, sessionCookie } from './session-cookie.ts'

export type SessionOptions = {
  sessions: ConsoleSessions
  sessionOf: FindSession
  /** The URL at which people reach the console, if it is configured. */
  publicUrl: string | null
}

const hidden = { hide: true } as const
const Text = Type.String({ maxLength: 2_000 })
const EXPIRED_INVITATION = 'This invitation was used or has expired. Ask for a new one.'

/** Starts, shows and ends the session of a browser. Sign-in with a provider is in sign-in-routes.ts. */
export function sessionRoutes(app: App, { sessions, sessionOf, publicUrl }: SessionOptions): void {
  // 204 without a session: the page asks at every start, and a browser reports a 401 as an error.
  app.get('/console/session', { schema: hidden }, async (request, reply) => {
    const session = await sessionOf(request)?.catch(error => {
      if (error instanceof Problem && error.status === 401) return null
      throw error
    })
    if (!session) return reply.code(204).send()
    const { actor, role, tenantId, expiresAt, keyName } = session
    const tenant = tenantId === null ? null : publicTenantId(tenantId)
    const name = keyName ?? actor.slice(actor.indexOf(':') + 1)
    return { name, actor, role, tenant, expires_at: expiresAt.toISOString() }
  })

  const SignInBody = Type.Object({
    name: Type.Optional(Text),
    password: Type.Optional(Text),
    key: Type.Optional(Text),
  })
  app.post('/console/session', { schema: { ...hidden, body: SignInBody } }, async (request, reply) => {
    requireOwnPage(publicUrl, request)
    const { name = '', password = '', key } = request.body
    const token = key === undefined ? await withPassword(request, { name, password }) : await withKey(request, key)
    return send(request, reply, token)
  })

  app.post('/console/sign-out', { schema: hidden, config: { body: 'none' } }, async (request, reply) => {
    await sessions.end(await signedIn(request), from(request))
    return reply
      .code(204)
      .header('set-cookie', sessionHeader(publicUrl, request, null))
      .send()
  })

  app.post('/console/invitation', { schema: { ...hidden, body: Type.Object({ token: Text }) } }, async request => {
    requireOwnPage(publicUrl, request)
    const user = await sessions.findInvited(request.body.token)
    if (user === null) throw problems.notFound(EXPIRED_INVITATION, 'invitation_expired')
    return { name: user.name, role: user.role }
  })

  const AcceptBody = Type.Object({ token: Text, password: Text })
  app.post('/console/invitation/accept', { schema: { ...hidden, body: AcceptBody } }, async (request, reply) => {
    requireOwnPage(publicUrl, request)
    const token = await sessions.acceptInvitation(request.body, from(request))
    if (token === null) throw problems.notFound(EXPIRED_INVITATION, 'invitation_expired')
    return send(request, reply, token)
  })

  async function withPassword(request: FastifyRequest, given: { name: string; password: string }): Promise<string> {
    const result = await sessions.beginWithPassword(given, from(request))
    if (result === 'wrong') throw problems.unauthorized('invalid_credentials', 'The name or the password is wrong.')
    if ('token' in result) return result.token
    const wait = result.waitS > 60 ? `${Math.ceil(result.waitS / 60)} minutes` : `${result.waitS} seconds`
    throw problems.tooManyRequests(result.waitS, `Too many failed attempts. Try again in ${wait}.`)
  }

  async function withKey(request: FastifyRequest, key: string): Promise<string> {
    const token = await sessions.beginWithKey(key.trim(), from(request))
    if (token === null)
      throw problems.unauthorized(
        'invalid_credentials',
        'This is not a valid admin key, or the key is not allowed from your IP address.',
      )
    return token
  }

  async function signedIn(request: FastifyRequest) {
    const found = sessionOf(request)
    if (found === null)
      throw problems.unauthorized('missing_credentials', 'You are not signed in. Sign in at /console.')
    return found
  }

  function send(request: FastifyRequest, reply: FastifyReply, token: string) {
    return reply
      .code(204)
      .header('set-cookie', sessionHeader(publicUrl, request, token))
      .send()
  }
}

const from = (request: FastifyRequest) => ({
  ip: request.ip,
  requestId: request.id,
  userAgent: request.raw.headers['user-agent'] ?? null,
})

/** The `set-cookie` header that stores the token, or without one deletes the cookie. */
export function sessionHeader(publicUrl: string | null, request: FastifyRequest, token: string | null): string {
  const lifetime = token === null ? { value: '', maxAgeS: 0 } : { value: token, maxAgeS: SESSION_MS / 1_000 }
  return cookie({ ...sessionCookie(publicUrl, request), ...lifetime, sameSite: 'Strict' })
}
