import type * as OpenIdClient from 'openid-client'
import type { Person } from '../../admin/console-sessions.ts'
import { type Problem, problems } from '../problems.ts'
/** Secrets of one sign-in. Only the browser that started it has them when it returns. */
export type Checks = { state: string; nonce: string; verifier: string }

type Provider = {
  /** Its host, as the name shown to people. */
  name: string
  begin(): Promise<{ url: URL; checks: Checks }>
  /** The claims of the person who returns with this query. Throws a Problem that is shown to the person. */
  complete(query: URLSearchParams, checks: Checks): Promise<Claims>
}

export type ProviderOptions = {
  issuer: string
  clientId: string
  clientSecret: string
  redirectUri: string
  /** The claim that contains the roles. */
  roleClaim: string
}

const TIMEOUT_S = 5
// Allowed difference between the provider's clock and ours, when an ID token is checked.
const CLOCK_TOLERANCE_S = 60

type Opened = { client: typeof OpenIdClient; config: OpenIdClient.Configuration }

/** Authorization code flow with PKCE, state and nonce. The first sign-in loads the library and discovers the provider. */
export function openProvider(options: ProviderOptions): Provider {
  const { redirectUri, roleClaim } = options
  const name = new URL(options.issuer).host
  let opening: Promise<Opened> | null = null
  const opened = () => {
    // After a failure, the next sign-in tries again.
    opening ??= discover(options).catch(error => {
      opening = null
      throw toUnreachable(name, error)
    })
    return opening
  }
  return {
    name,
    async begin() {
      const { client, config } = await opened()
      const verifier = client.randomPKCECodeVerifier()
      const checks = { state: client.randomState(), nonce: client.randomNonce(), verifier }
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: scopeFor(config, roleClaim),
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      return { url, checks }
    },
    async complete(query, { state, nonce, verifier }) {
      const { client, config } = await opened()
      const url = new URL(redirectUri)
      url.search = query.toString()
      try {
        const tokens = await client.authorizationCodeGrant(config, url, {
          pkceCodeVerifier: verifier,
          expectedState: state,
          expectedNonce: nonce,
        })
        const claims = tokens.claims() as Claims
        const hasAll = claimAt(claims, roleClaim) !== undefined && claims.email !== undefined
        if (hasAll || !config.serverMetadata().userinfo_endpoint) return claims
        const more = await client.fetchUserInfo(config, tokens.access_token, claims.sub)
        return { ...more, ...claims }
      } catch (error) {
        throw toSignInProblem(client, name, error)
      }
    },
  }
}

async function discover({ issuer, clientId, clientSecret }: ProviderOptions): Promise<Opened> {
  const client = await import('openid-client')
  const server = new URL(issuer)
  // Only an issuer on this machine may be http: see the setting.
  const execute = server.protocol === 'http:' ? [client.allowInsecureRequests] : []
  const basic = client.ClientSecretBasic(clientSecret)
  const post = client.ClientSecretPost(clientSecret)
  const config = await client.discovery(
    server,
    clientId,
    { [client.clockTolerance]: CLOCK_TOLERANCE_S },
    (as, ...rest) => {
      const methods = as.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
      return (methods.includes('client_secret_basic') ? basic : post)(as, ...rest)
    },
    { timeout: TIMEOUT_S, execute: [...execute, client.enableNonRepudiationChecks] },
  )
  return { client, config }
}

/** Some providers return a claim only if its scope is requested; others reject unknown scopes. */
function scopeFor(config: OpenIdClient.Configuration, roleClaim: string): string {
  const known = config.serverMetadata().scopes_supported ?? []
  return ['openid', 'email', 'profile', ...known.filter(scope => scope === roleClaim)].join(' ')
}

const toUnreachable = (name: string, cause: unknown) =>
  problems.unavailable(
    `${name} is unreachable, or its configuration does not match this server. Retry shortly.`,
    undefined,
    cause,
  )

/** Explains a failed sign-in to the person: what happened and what to do. */
function toSignInProblem(client: typeof OpenIdClient, name: string, error: unknown): Problem {
  if (error instanceof client.AuthorizationResponseError) {
    const word = /^[a-z_]{1,50}$/.test(error.error) ? error.error : 'no reason given'
    return problems.forbidden('sign_in_refused', `${name} rejected the sign-in: ${word}.`)
  }
  if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') return toEndedSignIn()
  const code = error instanceof client.ClientError ? error.code : undefined
  if (code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED')
    return problems.malformed(
      `The response of ${name} has expired or is not valid yet. Synchronize the clocks of the two servers.`,
      'clocks_differ',
      error,
    )
  if (code && MISMATCH_CODES.includes(code))
    return problems.malformed(
      `The response of ${name} does not match the request. Sign in again.`,
      'sign_in_invalid',
      error,
    )
  return toUnreachable(name, error)
}

const MISMATCH_CODES = [
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
]

export function toEndedSignIn(): Problem {
  const detail = 'This sign-in is complete, has expired, or was started in another browser. Sign in again.'
  return problems.malformed(detail, 'sign_in_over')
}

type Claims = { sub: string; [name: string]: unknown }

/** Values that fit in an audit row: no spaces or control characters, at most the length of an e-mail address. */
const WORD = /^[^\s\p{C}]{1,254}$/u

/** The person that the claims describe. Null if the subject is unusable. */
export function toPerson(claims: Claims, roleClaim: string): Person | null {
  const { sub: subject, email, email_verified: isVerified } = claims
  if (!WORD.test(subject)) return null
  // A user may have entered another person's address, so an unverified address does not identify the user.
  const isName = typeof email === 'string' && isVerified !== false && WORD.test(email)
  return { subject, name: isName ? email.toLowerCase() : subject, values: readRoleValues(claims, roleClaim) }
}

/** The claim of this name. If there is none, dots in the name are read as a path (`realm_access.roles`). */
function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  return name
    .split('.')
    .reduce<unknown>(
      (value, part) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, part) ? (value as Claims)[part] : undefined,
      claims,
    )
}

function readRoleValues(claims: Claims, roleClaim: string): string[] {
  if (roleClaim === 'email' && claims.email_verified !== true) return []
  const found = [claimAt(claims, roleClaim)].flat() as unknown[]
  return found.filter(value => typeof value === 'string')
}
