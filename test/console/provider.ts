import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { type Configuration, Provider } from 'oidc-provider'

type Claims = { email?: string; email_verified?: boolean; groups?: string[] | string }

export const CLIENT_SECRET = 'a secret is as long as this'.replaceAll(' ', '-')

type TestProvider = {
  issuer: string
  /** The accounts by subject; may be changed at any time. */
  people: Record<string, Claims>
  /** Unavailable: connections break before a response. */
  isUnavailable: boolean
  /** The lifetime of ID tokens; a negative value means expired ones. */
  idTokenTtlS: number
  close(): Promise<void>
}

/**
 * A real OpenID Connect provider on loopback. In place of a password form it offers one link per person. It is at
 * 127.0.0.1 and Kontor at localhost: another site, for browsers and their cookies.
 */
export async function startProvider(redirectUri: string): Promise<TestProvider> {
  const server = createServer((request, response) => {
    if (state.isUnavailable) request.socket.destroy()
    else if (request.url?.startsWith('/interaction/')) interact(request, response)
    else handle(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const state: TestProvider = {
    issuer,
    people: {},
    isUnavailable: false,
    idTokenTtlS: 3_600,
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  const provider = new Provider(issuer, buildConfiguration(state, redirectUri))
  // Its setting rejects negative times.
  const tokens = provider as unknown as { IdToken: { expiresIn(): number } }
  tokens.IdToken.expiresIn = () => state.idTokenTtlS
  const handle = provider.callback()

  /** `?as=ada` signs Ada in; without it, a page offers the choice. */
  async function interact(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url!, issuer)
    const as = url.searchParams.get('as')
    if (as === 'declined') {
      const refusal = { error: 'access_denied', error_description: 'does not want to' }
      await provider.interactionFinished(request, response, refusal)
    } else if (as !== null) {
      await provider.interactionFinished(request, response, { login: { accountId: as } })
    } else {
      const links = Object.keys(state.people).map(who => `<li><a href="?as=${who}">${who}</a>`)
      response.setHeader('content-type', 'text/html').end(`<title>Who is it?</title><ul>${links.join('')}</ul>`)
    }
  }
  return state
}

function buildConfiguration(state: TestProvider, redirectUri: string): Configuration {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: 'test' }
  return {
    jwks: { keys: [key as never] },
    cookies: { keys: ['signs the cookies of the provider'] },
    clients: [{ client_id: 'kontor', client_secret: CLIENT_SECRET, redirect_uris: [redirectUri] }],
    scopes: ['openid', 'email', 'profile', 'groups'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    ttl: { IdToken: 3_600, AccessToken: 60, Grant: 600, Interaction: 600, Session: 600 },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    findAccount: (_ctx, sub) => state.people[sub] && { accountId: sub, claims: () => ({ sub, ...state.people[sub] }) },
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client!.clientId,
        accountId: oidc.session!.accountId!,
      })
      grant.addOIDCScope('openid email profile groups')
      await grant.save()
      return grant
    },
  }
}

/** A free port outside the ephemeral range. */
export async function freePort(): Promise<number> {
  for (let port = 20_000 + (process.pid % 10_000); ; port++) {
    const probe = createTcpServer()
    const isFree = await new Promise<boolean>(resolve => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise(resolve => probe.close(resolve))
    if (isFree) return port
  }
}
