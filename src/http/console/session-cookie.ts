import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { ConsoleSession, ConsoleSessions } from '../../admin/console-sessions.ts'
import { isAllowed } from '../../domain/tenants/addresses.ts'
import { problems } from '../problems.ts'

/** The console session of a request, by its cookie; null if the request is not from the console or has a key. Rejects with a Problem. */
export type FindSession = (request: FastifyRequest) => Promise<ConsoleSession> | null

type SessionCookie = { name: string; isSecure: boolean }

/**
 * Without a configured public URL, the request decides whether the cookie is sent only over https. With the prefix `__Host-`, a browser
 * accepts the cookie only from exactly this host, over https.
 */
export function sessionCookie(publicUrl: string | null, request: FastifyRequest): SessionCookie {
  const isSecure = publicUrl === null ? request.protocol === 'https' : publicUrl.startsWith('https:')
  return { name: `${isSecure ? '__Host-' : ''}kontor_session`, isSecure }
}

/**
 * A page of another site can make a browser send the cookie, but not this header (a CORS preflight would reject it), and
 * it cannot send an Origin other than its own.
 */
const OWN_HEADER = 'x-kontor-console'

/** Throws unless the request comes from a page of the console. */
export function requireOwnPage(publicUrl: string | null, request: FastifyRequest): void {
  const { headers } = request.raw
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (headers[OWN_HEADER] !== undefined && (isRead || isOwnOrigin(publicUrl, headers))) return
  const own = publicUrl === null ? '/console' : `${new URL(publicUrl).origin}/console`
  throw problems.forbidden(
    'not_from_the_console',
    `Only pages of ${own} may use the session cookie. Programs must send an admin key.`,
  )
}

/** A proxy may change the header Host. Then the public URL must be configured. */
function isOwnOrigin(publicUrl: string | null, { origin, host }: IncomingHttpHeaders): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false
  if (publicUrl !== null) return origin === new URL(publicUrl).origin
  return new URL(origin).host === host
}

const sessionEnded = () => problems.unauthorized('session_ended', 'Your session has ended. Sign in again.')

export function sessionReader(options: {
  sessions: Pick<ConsoleSessions, 'find'>
  publicUrl: string | null
}): FindSession {
  const { sessions, publicUrl } = options
  return request => {
    const { headers } = request.raw
    // If the request also has a key, only the key counts.
    if (headers.authorization !== undefined || headers['x-api-key'] !== undefined) return null
    const token = cookieIn(headers, sessionCookie(publicUrl, request).name)
    if (token !== null) return find(token, request)
    // The browser deletes the cookie when the session expires.
    return headers[OWN_HEADER] === undefined ? null : Promise.reject(sessionEnded())
  }

  async function find(token: string, request: FastifyRequest): Promise<ConsoleSession> {
    requireOwnPage(publicUrl, request)
    const session = await sessions.find(token)
    if (session === null) throw sessionEnded()
    if (!isAllowed(session.allowedAddresses, request.ip)) throw problems.addressNotAllowed(request.ip)
    return session
  }
}

export type CookieOptions = {
  name: string
  /** Letters, digits and -._ only. */
  value: string
  maxAgeS: number
  isSecure: boolean
  /** Strict: only requests from this site's own pages carry the cookie. Lax: also navigation from other sites. */
  sameSite: 'Strict' | 'Lax'
}

/** The value of a `set-cookie` header. Scripts cannot read the cookie. */
export function cookie({ name, value, maxAgeS, isSecure, sameSite }: CookieOptions): string {
  const secure = isSecure ? '; Secure' : ''
  return `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=${sameSite}${secure}`
}

/** The value of a cookie; of several with this name, the first. */
export function cookieIn(headers: IncomingHttpHeaders, name: string): string | null {
  for (const part of headers.cookie?.split(';') ?? []) {
    const text = part.trim()
    if (text.startsWith(`${name}=`)) return text.slice(name.length + 1)
  }
  return null
}
