import type { FirstStart } from '../admin/first-start.ts'
import type { Surface } from '../config/config.ts'

/** A server that has just started, for whoever started it. */
export type StartedServer = {
  version: string
  url: string
  opsUrl: string | null
  /** Where the data lives, in words. */
  data: string
  /** What a command needs to reach it; empty where it finds it by itself. */
  dataFlag: string
  surfaces: readonly Surface[]
  /** What an acknowledged event on NATS survives; null without NATS. */
  promise: string | null
  /** Only this machine can reach it. */
  isLoopback: boolean
}

/** `adminKey`: the key, or where it is. */
export function firstBanner(server: StartedServer, made: FirstStart, adminKey: string): string {
  return [
    ...heading(server),
    '',
    `  First start: tenant "${made.tenant.name}" (${made.tenant.id}) is made, with these keys.`,
    '  They are shown only this once: keep them now.',
    '',
    `    Private key    ${made.privateKey.key}`,
    `    Tracking key   ${made.trackingKey.key}`,
    `    Admin key      ${adminKey}`,
    `    Webhook        ${server.url}${made.source.path}`,
    `    its token      ${made.source.token}`,
    '',
    '  Try it. Each line works as it stands:',
    ...examples(server, made).flatMap(({ what, line }) => ['', `    # ${what}`, `    ${line}`]),
    '',
    ...addresses(server),
    '',
  ].join('\n')
}

export function banner(server: StartedServer): string {
  return [
    ...heading(server),
    '',
    ...addresses(server),
    `  New keys        npm run kontor -- key create --tenant default --kind private${server.dataFlag}`,
    '  All commands    npm run kontor -- --help',
    '',
  ].join('\n')
}

function heading({ version, url, isLoopback }: StartedServer): string[] {
  const note = isLoopback ? ['  (this machine only; KONTOR_HOST=0.0.0.0 opens it to others)'] : []
  return ['', `Kontor ${version} is running at ${url}`, ...note]
}

function addresses({ url, opsUrl, data, promise, surfaces }: StartedServer): string[] {
  const hasHttp = surfaces.some(surface => surface !== 'worker')
  return [
    ...(surfaces.includes('console')
      ? [`  Console         ${url}/console (sign in with the admin key)`]
      : []),
    ...(hasHttp ? [`  API reference   ${url}/docs`, `  Guides          ${url}/docs/guides`] : []),
    `  Operations      ${opsUrl === null ? 'no operations port' : `${opsUrl}/healthz, /readyz, /metrics`}`,
    `  Data            ${data}`,
    ...(promise === null ? [] : [`  Events          in JetStream, acknowledged means: ${promise}`]),
    `  Stop            Ctrl-C, or kill -TERM ${process.pid}`,
  ]
}

function examples({ url, surfaces }: StartedServer, made: FirstStart): { what: string; line: string }[] {
  const json = "-H 'Content-Type: application/json'"
  const bearer = (secret: string) => `-H 'Authorization: Bearer ${secret}'`
  const privately = bearer(made.privateKey.key)
  const contact = {
    entityType: 'contact',
    id: 'c-1',
    sourceUpdatedAt: '2025-01-31T12:00:00Z',
    data: { email: 'ada@example.com', name: 'Ada Lovelace' },
  }
  const visit = { event_type: 'page_view', visitor: 'v-1', data: { page: 'https://example.com/' } }
  const hook = { inbound_event_id: 'evt-1', event_type: 'ticket.opened', payload: { subject: 'Hello' } }
  const post = (path: string, credential: string, body: object, extra = '') =>
    `curl ${url}${path} ${credential} ${json}${extra} -d '${JSON.stringify(body)}'`
  const reading = surfaces.includes('data')
    ? [{ what: 'see what came in', line: `curl '${url}/v1/events?limit=10' ${privately}` }]
    : []
  return [
    ...(surfaces.includes('data')
      ? [
          {
            what: 'write a contact, and wait until it is applied',
            line: post('/v1/contacts', privately, contact, " -H 'Prefer: wait=10'"),
          },
          { what: 'read it back', line: `curl ${url}/v1/contacts/c-1 ${privately}` },
        ]
      : []),
    ...(surfaces.includes('events')
      ? [{ what: 'track a page view', line: post('/v1/track/', bearer(made.trackingKey.key), visit) }]
      : []),
    ...(surfaces.includes('inbound')
      ? [{ what: 'receive a webhook', line: post(made.source.path, bearer(made.source.token), hook) }]
      : []),
    ...reading,
  ]
}
