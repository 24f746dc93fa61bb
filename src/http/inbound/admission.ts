import type { FastifyReply, FastifyRequest } from 'fastify'
import { isAllowed } from '../../domain/tenants/addresses.ts'
import type { Source } from '../../store/inbound/sources.ts'
import type { Directory } from '../../store/tenants/directory.ts'
import { type Problem, problems } from '../problems.ts'
import { type Credentials, showsToken, tokenProblem } from './credentials.ts'

/** The source that a request is posted to. */
type Target = { source: Source; credentials: Credentials }

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on the inbound route as soon as the source is known, also where the request is refused. */
    target: Target | null
  }
}

type Deps = {
  directory: Pick<Directory, 'source'>
  credentials: (source: Source) => Credentials
  now: () => Date
}
type Done = (error?: Error) => void

/** An onRequest hook: finds the source and checks the token before any of the body is read. */
export function admit(deps: Deps) {
  return (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
    const settle = (source: Source | null) => {
      let problem: Problem | null
      try {
        problem = checkSource(deps, request, source)
      } catch (error) {
        return done(error as Error)
      }
      done(problem ?? undefined)
    }
    const source = deps.directory.source((request.params as { sourceConfigId: string }).sourceConfigId)
    // A look-up that fails says nothing about the source: 503, never 404.
    if (source instanceof Promise)
      source.then(settle, error => done(problems.unavailable(undefined, undefined, error)))
    else settle(source)
  }
}

function checkSource(deps: Deps, request: FastifyRequest, source: Source | null): Problem | null {
  if (source === null) return problems.notFound('There is no such source.', 'source_not_found')
  const credentials = deps.credentials(source)
  request.target = { source, credentials }
  const { headers } = request.raw
  const problem = tokenProblem(credentials, headers, deps.now())
  if (problem) return problem
  const { allowed_addresses } = source.config
  if (!isAllowed(allowed_addresses, request.ip)) return problems.addressNotAllowed(request.ip)
  // Without a token the signature must be good, and that is known only when the body is there.
  const hasToken = showsToken(credentials, headers)
  if (hasToken) request.isAuthenticated = true
  // Who has shown no token yet has to sign: what becomes of the source is not for strangers.
  return source.enabled || !hasToken ? null : disabled()
}

export function disabled(): Problem {
  return problems.forbidden('source_disabled', 'This source is disabled and accepts nothing.')
}
