import { hkdfSync } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ConsoleSessions } from '../../admin/console-sessions.ts'
import { openSecrets } from '../../admin/secrets.ts'
import { isUnavailable } from '../../postgres/database.ts'
import type { App } from '../app.ts'
import { problems, toProblem } from '../problems.ts'
import { problemPage } from './page.ts'
import { type Checks, openProvider, type ProviderOptions, toEndedSignIn, toPerson } from './provider.ts'
import { cookie, cookieIn } from './session-cookie.ts'
import { sessionHeader } from './session-routes.ts'
export type SignIn = Omit<ProviderOptions, 'redirectUri'> & {
  /** The URL at which people reach the console. */
  publicUrl: string
  sessions: ConsoleSessions
  now: () => Date
}

type PendingSignIn = Checks & { to: string; until: number }

const PATH = '/console/oidc'
const SIGN_IN_MS = 600_000

/** The URL that starts a sign-in, and the name of the provider. */
export function signInLink({ issuer, publicUrl }: SignIn): { name: string; href: string } {
  return { name: new URL(issuer).host, href: `${publicUrl}${PATH}/start` }
}

/** Sign-in at an OpenID Connect provider. `stylesheets` are those of the error pages. */
export function signInRoutes(app: App, options: SignIn & { stylesheets(): Promise<string[]> }): void {
  const { publicUrl, sessions, now } = options
  const provider = openProvider({ ...options, redirectUri: `${publicUrl}${PATH}/callback` })
  const kept = openPendingSignIns(options)
  const page = { schema: { hide: true }, errorHandler: sendProblemPage(options) }

  app.get(`${PATH}/start`, page, async (request, reply) => {
    const { to } = request.query as { to?: unknown }
    const { url, checks } = await provider.begin()
    reply.header(
      'set-cookie',
      kept.cookie({ ...checks, to: parseReturnAddress(to), until: now().getTime() + SIGN_IN_MS }),
    )
    return reply.redirect(url.href, 303)
  })

  app.get(`${PATH}/callback`, page, async (request, reply) => {
    const query = new URL(request.url, publicUrl).searchParams
    const own = kept.read(request)
    reply.header('set-cookie', kept.gone)
    if (own === null || own.until < now().getTime() || own.state !== query.get('state')) throw toEndedSignIn()
    const person = toPerson(await provider.complete(query, own), options.roleClaim)
    if (person === null) throw problems.malformed('The claim sub of the provider is missing or invalid.', 'no_subject')
    const token = await sessions.begin(person, {
      ip: request.ip,
      requestId: request.id,
      userAgent: request.raw.headers['user-agent'] ?? null,
    })
    if (token === null) {
      const { name, values } = person
      request.log.warn({ person: name, values: values.slice(0, 50) }, 'sign-in rejected: the person has no role')
      throw problems.forbidden(
        'no_role',
        `You are signed in at ${provider.name} as ${name}, but have no role in Kontor. Ask an operator of this server to add one (KONTOR_OIDC_ROLES).`,
      )
    }
    reply.header('set-cookie', sessionHeader(publicUrl, request, token))
    return reply.redirect(`${publicUrl}/console${own.to}`, 303)
  })
}

/** Accepts only paths within the console, so that a crafted link cannot redirect to another site. */
function parseReturnAddress(to: unknown): string {
  return typeof to === 'string' && /^#\/[\x21-\x7e]{0,2000}$/.test(to) ? to : ''
}

/**
 * The cookie that holds a started sign-in. It is encrypted with the client secret, which all nodes have, so any node can
 * complete the sign-in, and nothing is stored for sign-ins that are abandoned.
 */
function openPendingSignIns({ clientSecret, issuer, publicUrl }: SignIn) {
  const key = Buffer.from(hkdfSync('sha256', clientSecret, issuer, 'kontor sign-in', 32))
  const { seal, open } = openSecrets([key])
  const isSecure = publicUrl.startsWith('https:')
  const name = `${isSecure ? '__Host-' : ''}kontor_sign_in`
  // Lax, because the browser returns from the provider's site.
  const make = (value: string, maxAgeS: number) => cookie({ name, value, maxAgeS, isSecure, sameSite: 'Lax' })
  return {
    gone: make('', 0),
    cookie: (own: PendingSignIn) => make(seal(JSON.stringify(own)), SIGN_IN_MS / 1_000),
    read(request: FastifyRequest): PendingSignIn | null {
      const sealed = cookieIn(request.raw.headers, name)
      try {
        return sealed ? (JSON.parse(open(sealed)) as PendingSignIn) : null
      } catch {
        return null // not our cookie, or encrypted with another client secret
      }
    },
  }
}

/** People open these URLs: they get an error page with a link, not JSON. */
function sendProblemPage({ stylesheets, publicUrl }: SignIn & { stylesheets(): Promise<string[]> }) {
  return async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const problem = toProblem(error, isUnavailable)
    request.problem = problem
    // Errors of the provider have a cause. Invented callbacks have none and are not logged; an outage (5xx) is logged elsewhere.
    if (problem.cause && problem.status < 500)
      request.log.warn({ request_id: request.id, code: problem.code, err: problem.cause }, 'sign-in failed')
    const { html, policy } = problemPage({
      problem,
      requestId: request.id,
      stylesheets: await stylesheets(),
      again: `${publicUrl}${PATH}/start`,
      console: `${publicUrl}/console`,
    })
    reply.code(problem.status).headers(problem.headers ?? {})
    return reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(html)
  }
}
