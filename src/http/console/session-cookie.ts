import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { ConsoleSession, ConsoleSessions } from '../../admin/console-sessions.ts'
import { problems } from '../problems.ts'

/** The console session of a request, by its cookie; null without a cookie. Rejects with a Problem. */
export type FindSession = (request: FastifyRequest) => Promise<ConsoleSession> | null

type SessionCookie = { name: string; isSecure: boolean }

/** With the prefix `__Host-`, a browser accepts the cookie only from exactly this host, over https. */
export function sessionCookie(publicUrl: string): SessionCookie {
  const isSecure = publicUrl.startsWith('https:')
  return { name: `${isSecure ? '__Host-' : ''}kontor_session`, isSecure }
}

/**
 * A page of another site can make a browser send the cookie, but not this header (a CORS preflight would reject it), and
 * it cannot send an Origin other than its own.
 */
const OWN_HEADER = 'x-kontor-console'

export function sessionReader(options: { sessions: Pick<ConsoleSessions, 'find'>; publicUrl: string }): FindSession {
  const { name } = sessionCookie(options.publicUrl)
  const { origin } = new URL(options.publicUrl)
  return request => {
    const { headers } = request.raw
    const token = cookieIn(headers, name)
    // If the request also has a key, only the key counts.
    if (token === null || headers.authorization !== undefined || headers['x-api-key'] !== undefined) return null
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (headers[OWN_HEADER] === undefined || (!isRead && headers.origin !== origin))
      return Promise.reject(
        problems.forbidden(
          'not_from_the_console',
          `Only pages of ${origin}/console may use the session cookie. Programs must use an admin key.`,
        ),
      )
    return find(token)
  }

  async function find(token: string): Promise<ConsoleSession> {
    const session = await options.sessions.find(token)
    if (session === null) throw problems.unauthorized('session_ended', 'Your session has ended. Sign in again.')
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
