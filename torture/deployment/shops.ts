import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

export type Source = { id: string; token: string; secret: string | null }

/** A tenant with its keys and sources. */
export type Shop = {
  tenant: string
  privateKey: string
  trackingKey: string
  webhook: Source
  /** its requests are signed */
  automation: Source
  cdp: Source
  /** a small budget; events over it are deferred */
  limited: Source
  billing: Source
}

export const LIMITED_EVENTS_PER_SECOND = 40

const WIDE = { rate_limit: { events: 1_000_000, per_seconds: 60 } }
const SOURCES = {
  webhook: { type: 'webhook', ...WIDE },
  automation: { type: 'automation', signing_secret: 'generate', ...WIDE },
  cdp: { type: 'cdp', ...WIDE },
  limited: { type: 'webhook', rate_limit: { events: LIMITED_EVENTS_PER_SECOND, per_seconds: 1 } },
  billing: { type: 'webhook', ...WIDE },
} as const

export type Admin = (path: string, body?: object) => Promise<Record<string, unknown>>

/** Calls the admin API; throws unless the response is 2xx. */
export function adminAt(url: string, key: string): Admin {
  return async (path, body) => {
    const response = await fetch(`${url}/admin/v1/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const answer = await response.text()
    if (!response.ok) throw new Error(`${path} returned ${response.status}: ${answer}`)
    return JSON.parse(answer)
  }
}

/** The first start writes the keys to a file and prints its path. */
export async function adminKeyIn(logFile: string): Promise<string> {
  for (let patience = 200; ; patience--) {
    const file = / in the file (.+)\. Copy them/.exec(await readFile(logFile, 'utf8'))?.[1]
    const key = file && /^ADMIN_KEY=(.+)$/m.exec(await readFile(file, 'utf8'))?.[1]
    if (key) return key
    if (patience === 0) throw new Error(`${logFile} contains no admin key`)
    await sleep(50)
  }
}

export async function openShop(admin: Admin, name: string): Promise<Shop> {
  const { id: tenant } = (await admin('tenants', { name })) as { id: string }
  const createKey = async (kind: string) => (await admin('keys', { tenant, kind })).key as string
  const sources = await Promise.all(
    Object.entries(SOURCES).map(async ([source, settings]) => {
      const made = await admin('sources', { tenant, name: source, ...settings })
      return [source, { id: made.id, token: made.token, secret: made.signing_secret }]
    }),
  )
  return {
    tenant,
    privateKey: await createKey('private'),
    trackingKey: await createKey('tracking'),
    ...(Object.fromEntries(sources) as Record<keyof typeof SOURCES, Source>),
  }
}
