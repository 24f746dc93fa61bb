import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findHome } from '../../embedded-postgres/home.ts'
import type { Admin } from '../admin/admin.ts'
import { AdminError, invalidValues } from '../admin/error.ts'
import type { ImportedRates } from '../admin/rates.ts'
import { cliEnvironment, type RemoteServer, readConfig } from '../config/config.ts'
import { withoutTrailingSlash } from '../config/values.ts'
import type { ValidationError } from '../domain/validation-error.ts'
import { UsageError } from './errors.ts'

/** `--profile`, `--data` and the environment decide whether a command uses a remote server. */
export type Place = { data?: string | undefined; profile?: string | undefined }

const DEFAULT_PROFILE = 'default'

/**
 * The server whose admin API runs the command: that of `--profile`, of KONTOR_URL and KONTOR_KEY, or of `kontor login` on a machine
 * without a database. Null: the command uses the database of this machine. `--data` and DATABASE_URL always mean this machine.
 */
export async function findRemote({ data, profile }: Place): Promise<RemoteServer | null> {
  const { url, key, profile: environmentProfile, hasDatabase } = cliEnvironment()
  const name = profile ?? environmentProfile
  if (name !== undefined) {
    if (data !== undefined) throw new UsageError('Specify either --data or --profile, not both.')
    return readProfile(name)
  }
  if (data !== undefined || hasDatabase) return null
  if (url === undefined)
    return (await emptyDataDir({})) === null ? null : ((await readProfiles())[DEFAULT_PROFILE] ?? null)
  if (key === undefined)
    throw new UsageError('KONTOR_URL is set, but KONTOR_KEY is not. Set it to an admin key (adm_…).')
  if (!key.startsWith('adm_'))
    throw new UsageError(
      'This command needs an admin key (adm_…) in KONTOR_KEY. To create one, run this on the server: kontor key create --kind admin',
    )
  return { url: withoutTrailingSlash(url), key }
}

function needsDatabase(url: string): UsageError {
  return new UsageError(
    `This command is not available through the admin API of ${url}. Run it on the server, or set --data to use a database on this machine.`,
  )
}

/** For commands that need the database of this machine. */
export async function requireLocal(options: Place): Promise<void> {
  const remote = await findRemote(options)
  if (remote !== null) throw needsDatabase(remote.url)
}

/** The data directory if it has no database and DATABASE_URL is not set; otherwise null. */
export async function emptyDataDir(options: Place): Promise<string | null> {
  const { databaseUrl, dataDir } = readConfig(undefined, { dataDir: options.data })
  return databaseUrl !== null || (await findHome(dataDir)) !== null ? null : dataDir
}

type Profiles = Record<string, RemoteServer>

function profilesPath(): string {
  return join(cliEnvironment().configHome ?? join(homedir(), '.config'), 'kontor', 'profiles.json')
}

async function readProfiles(): Promise<Profiles> {
  try {
    return JSON.parse(await readFile(profilesPath(), 'utf8')) as Profiles
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new UsageError(`${profilesPath()} cannot be read: ${(error as Error).message}`)
  }
}

async function readProfile(name: string): Promise<RemoteServer> {
  const profiles = await readProfiles()
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  if (found) return found
  throw new UsageError(`There is no profile ${JSON.stringify(name)}. Create it: kontor login URL --profile ${name}`)
}

/** Only the user can read the file, because it contains the key. */
export async function writeProfile(name: string | undefined, server: RemoteServer): Promise<string> {
  const path = profilesPath()
  const profiles = { ...(await readProfiles()), [name ?? DEFAULT_PROFILE]: server }
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(`${path}.new`, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 })
  await rename(`${path}.new`, path)
  return path
}

const TIMEOUT_MS = 60_000

type Body = Record<string, unknown>
type Page = { results: unknown[]; next_cursor: string | null }
type Send = <Result>(method: string, path: string, body?: object) => Promise<Result>

/** Sends requests to the admin API. A problem is reported like an error of the local command. */
export function openRemote(server: RemoteServer): Send {
  return async (method, path, body) => {
    const response = await request(server, path, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const text = await response.text()
    return (text === '' ? undefined : JSON.parse(text)) as never
  }
}

/** A file of the admin API, in chunks. An incomplete file is an error. */
export async function* download(server: RemoteServer, path: string, query: Body): AsyncGenerator<Uint8Array> {
  const response = await request(server, `/admin/v1${path}${queryText(query)}`, {})
  yield* response.body ?? []
}

async function request({ url, key }: RemoteServer, path: string, init: RequestInit): Promise<Response> {
  const headers = { ...init.headers, authorization: `Bearer ${key}` }
  const response = await fetch(url + path, { ...init, headers }).catch(error => {
    const { message, cause } = error as Error & { cause?: NodeJS.ErrnoException }
    const reason = cause?.message || cause?.code || message
    throw new AdminError('not_found', 'unreachable', `${url} is unreachable: ${reason}`)
  })
  if (response.ok) return response
  const { code, reason, errors } = explainProblem(url, response.status, await response.text())
  if (errors.length > 0) throw invalidValues(code, errors)
  throw new AdminError(ERROR_KINDS[response.status] ?? 'invalid', code, reason)
}

const ERROR_KINDS: Record<number, AdminError['kind']> = {
  401: 'forbidden',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
}

function explainProblem(url: string, status: number, text: string) {
  try {
    const { code = 'refused', detail, errors = [] }: Partial<Problem> = JSON.parse(text)
    if (detail) return { code, reason: detail, errors }
  } catch {}
  return {
    code: 'refused',
    reason: `${url} responded with status ${status}. Check that this is the URL of a Kontor server.`,
    errors: [],
  }
}

type Problem = { code: string; detail: string; errors: ValidationError[] }

export function readDigestPreview(server: RemoteServer, tenant: string) {
  const path = `/admin/v1/tenants/${encodeURIComponent(tenant)}/digest/preview`
  return openRemote(server)<{ subject: string; text: string; html: string }>('GET', path)
}

/** The actions that the admin API serves, under the names of the local ones. Any other action needs the database. */
export function remoteAdmin(server: RemoteServer): Admin {
  const send = openRemote(server)
  const get = (path: string, query: Body = {}) => send<never>('GET', `/admin/v1${path}${queryText(query)}`)
  const post = (path: string, body?: object) => send<never>('POST', `/admin/v1${path}`, body ?? {})
  const act = (path: string) => send<never>('POST', `/admin/v1${path}`)
  const list = async (path: string, query: Body = {}) => ((await get(path, query)) as { results: never }).results
  /** A list that the command reads page by page: `before` is the last row of the previous page. */
  const paged = (path: string) => {
    let cursor: string | null = null
    return async ({ before, ...query }: Body) => {
      if (before !== undefined && cursor === null) return []
      const page = (await get(path, { ...query, ...(before !== undefined && { cursor }) })) as Page
      cursor = page.next_cursor
      return page.results
    }
  }
  const at = (id: string) => encodeURIComponent(id)
  const shared = (path: string) => ({
    list: (tenant?: string | null) => list(path, { tenant: tenant ?? undefined }),
    create: (body: object) => post(path, body),
    show: (id: string) => get(`${path}/${at(id)}`),
    update: (id: string, body: object) => send('PATCH', `/admin/v1${path}/${at(id)}`, body),
    setEnabled: (id: string, enabled: boolean) => act(`${path}/${at(id)}/${enabled ? 'enable' : 'disable'}`),
    delete: (id: string) => send('DELETE', `/admin/v1${path}/${at(id)}`),
  })
  const rotate = (path: string, id: string, { overlapHours, ...body }: Body) =>
    post(`${path}/${at(id)}/rotate`, { ...body, overlap_hours: overlapHours })
  const person =
    (verb: string) =>
    ({ id, ...body }: Body) =>
      post(`/people/${at(id as string)}/${verb}`, body)
  /** Starts long work and waits for its receipt. */
  const complete = async (path: string, body: object) => {
    let receipt: Receipt = await post(path, body)
    while (receipt.status === 'running') {
      await sleep(POLL_MS)
      receipt = await get(`${path}/${receipt.id}`)
    }
    return receipt
  }
  const actions: Record<string, Record<string, unknown>> = {
    tenants: shared('/tenants'),
    keys: {
      ...shared('/keys'),
      rotate: (id: string, body: Body) => rotate('/keys', id, body),
      revoke: (id: string, { withMade }: Body) => post(`/keys/${at(id)}/revoke`, { with_made: withMade }),
    },
    sources: { ...shared('/sources'), rotate: (id: string, body: Body) => rotate('/sources', id, body) },
    destinations: {
      ...shared('/destinations'),
      rotate: (id: string, body: Body) => rotate('/destinations', id, body),
      test: (id: string) => act(`/destinations/${at(id)}/test`),
      testRule: async (id: string, rule: string) =>
        ((await post(`/tenants/${at(id)}/alert-test`, { rule })) as { results: never }).results,
      retry: (id: string) => act(`/destinations/${at(id)}/retry`),
      replay: (id: string, since: string) => post(`/destinations/${at(id)}/replay`, { since }),
      deliveries: (id: string, query: Body) => list(`/destinations/${at(id)}/deliveries`, query),
    },
    policies: {
      show: (id: string) => get(`/tenants/${at(id)}/policy`),
      set: (id: string, body: object) => send('PUT', `/admin/v1/tenants/${at(id)}/policy`, body),
    },
    accounts: {
      list: (id: string) => list(`/tenants/${at(id)}/accounts/merged`),
      merge: (id: string, body: object) => post(`/tenants/${at(id)}/accounts/merge`, body),
      unmerge: (id: string, account: string) => post(`/tenants/${at(id)}/accounts/unmerge`, { account }),
    },
    books: {
      close: (id: string, month: string) => post(`/tenants/${at(id)}/books/close`, { month }),
      reopen: (id: string, month: string) => post(`/tenants/${at(id)}/books/reopen`, { month }),
      status: (id: string, { month, page, pageSize }: Body) =>
        get(`/tenants/${at(id)}/books`, { month, page, page_size: pageSize }),
    },
    rates: { import: (id: string, csv: string) => importRates(body => post(`/tenants/${at(id)}/rates`, body), csv) },
    deadLetters: {
      list: paged('/dead-letters'),
      show: (id: string, tenant?: string) => get(`/dead-letters/${at(id)}`, { tenant }),
      replay: (order: object, options: ReplayOptions) =>
        replayAll(body => post('/dead-letters/replay', body), order, options),
    },
    erasures: {
      preview: (body: object) => post('/erasures', { ...body, dry_run: true }),
      erase: (body: object) => complete('/erasures', body),
    },
    purges: {
      preview: (body: object) => post('/purges', { ...body, dry_run: true }),
      purge: (body: object) => complete('/purges', body),
    },
    sourceTests: {
      test: (id: string, { body, headers, waitMs }: TestOptions) =>
        post(`/sources/${at(id)}/test`, {
          headers,
          wait_seconds: waitMs / 1000,
          ...(body && { body: parseBody(body) }),
        }),
    },
    people: {
      show: ({ id, tenant }: Body) => get(`/people/${at(id as string)}`, { tenant }),
      merge: person('merge'),
      split: person('split'),
      verify: person('verify'),
      export: async ({ id, ...query }: Body) => decoded(download(server, `/people/${at(id as string)}/export`, query)),
    },
    users: {
      list: () => list('/users'),
      invite: (body: object) => post('/users', body),
      reset: (id: string) => act(`/users/${at(id)}/reset`),
      setDisabled: (id: string, disabled: boolean) => act(`/users/${at(id)}/${disabled ? 'disable' : 'enable'}`),
    },
    sessions: { list: () => list('/sessions'), end: (id: string) => act(`/sessions/${at(id)}/end`) },
    alerts: {
      list: ({ tenant, all }: Body) => list('/alerts', { tenant, ...(all === true && { state: 'all' }) }),
      rules: (id: string) => get(`/tenants/${at(id)}/alert-rules`),
      setRules: (id: string, rules: object) => send('PATCH', `/admin/v1/tenants/${at(id)}/alert-rules`, rules),
      values: (id: string) => list(`/tenants/${at(id)}/alert-values`),
    },
    digests: {
      show: (id: string) => get(`/tenants/${at(id)}/digest`),
      set: (id: string, schedule: object) => send('PATCH', `/admin/v1/tenants/${at(id)}/digest`, schedule),
    },
    audit: { list: paged('/audit') },
    suppressions: {
      list: (tenant: string) => get('/suppressions', { tenant }),
      remove: ({ tenant, id }: Body) =>
        send('DELETE', `/admin/v1/suppressions/${at(id as string)}${queryText({ tenant })}`),
    },
  }
  return new Proxy({} as Admin, {
    get: (_, subject: string) =>
      new Proxy(actions[subject] ?? {}, {
        get(own, name: string) {
          if (Object.hasOwn(own, name)) return own[name]
          throw needsDatabase(server.url)
        },
      }),
  })
}

const POLL_MS = 1_000

type Receipt = { id: string; status: string }
type TestOptions = { body?: string; headers?: Record<string, string>; waitMs: number }
type ReplayOptions = { progress: (replayed: number) => void; waitMs: number }
type Replayed = { replayed: number; applied: number; failed_again: number; waiting: number; remaining: number }

/** One request replays a limited number, so it is repeated until none remain. */
async function replayAll(
  post: (body: object) => Promise<Replayed>,
  order: object,
  { progress, waitMs }: ReplayOptions,
): Promise<Replayed> {
  const total = { replayed: 0, applied: 0, failed_again: 0, waiting: 0 }
  for (;;) {
    const { remaining, ...part } = await post({ ...order, wait_seconds: waitMs / 1000 })
    for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += part[name]
    if (remaining === 0 || part.replayed === 0) return { ...total, remaining }
    progress(total.replayed)
  }
}

const RATE_LINES = 2_000

/** The history of all currencies is larger than the limit of a request, so it is sent in parts. */
async function importRates(post: (body: object) => Promise<ImportedRates>, csv: string): Promise<ImportedRates> {
  const { countRates, parseRates } = await import('../admin/rates.ts')
  // A file with an error must not be imported partially.
  const counts = countRates(await parseRates(csv))
  const [header, ...lines] = csv.split('\n')
  let tenant = ''
  for (let i = 0; i < lines.length; i += RATE_LINES) {
    const part = lines.slice(i, i + RATE_LINES)
    if (part.some(line => line.trim() !== '')) ({ tenant } = await post({ csv: [header, ...part].join('\n') }))
  }
  return { tenant, ...counts }
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UsageError(`--body is not JSON: ${(error as Error).message}`)
  }
}

async function* decoded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true })
  yield decoder.decode()
}

function queryText(query: Body): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null)
      parameters.set(name, value instanceof Date ? value.toISOString() : `${value}`)
  return `${parameters}` && `?${parameters}`
}
