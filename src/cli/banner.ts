import type { FirstStart } from '../admin/first-start.ts'
import type { Surface } from '../config/config.ts'

/** What the start banner shows of the server. */
export type StartedServer = {
  version: string
  url: string
  opsUrl: string | null
  /** The data directory or the database addresses. */
  data: string
  /** The --data option that commands need to find this server; empty for the default directory. */
  dataFlag: string
  surfaces: readonly Surface[]
  /** The durability of an acknowledged event in JetStream; null without NATS. */
  promise: string | null
  /** Whether the server is reachable from this machine only. */
  isLoopback: boolean
}

/** `adminKey`: the key, or the file that contains it. */
export function firstBanner(server: StartedServer, made: FirstStart, adminKey: string): string {
  return [
    ...heading(server),
    '',
    `  First start: created tenant "${made.tenant.name}" (${made.tenant.id}) with these keys.`,
    '  They are shown only once. Save them now.',
    '',
    `    Private key    ${made.privateKey.key}`,
    `    Tracking key   ${made.trackingKey.key}`,
    `    Admin key      ${adminKey}`,
    `    Webhook URL    ${server.url}${made.source.path}`,
    `    Webhook token  ${made.source.token}`,
    '',
    '  Try it. You can run each command as it is:',
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
  const note = isLoopback
    ? ['  (reachable from this machine only; set KONTOR_HOST=0.0.0.0 to allow other machines)']
    : []
  return ['', `Kontor ${version} is running at ${url}`, ...note]
}

function addresses({ url, opsUrl, data, promise, surfaces }: StartedServer): string[] {
  const hasHttp = surfaces.some(surface => surface !== 'worker')
  return [
    ...(surfaces.includes('console')
      ? [`  Console         ${url}/console (sign in with the admin key)`]
      : []),
    ...(hasHttp ? [`  API reference   ${url}/docs`, `  Guides          ${url}/docs/guides`] : []),
    `  Operations      ${opsUrl === null ? 'disabled (KONTOR_OPS_PORT=off)' : `${opsUrl}/healthz, /readyz, /metrics`}`,
    `  Data            ${data}`,
    ...(promise === null ? [] : [`  Events          stored in JetStream, durability: ${promise}`]),
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
    ? [{ what: 'list recent events', line: `curl '${url}/v1/events?limit=10' ${privately}` }]
    : []
  return [
    ...(surfaces.includes('data')
      ? [
          {
            what: 'create a contact and wait until it is applied',
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
