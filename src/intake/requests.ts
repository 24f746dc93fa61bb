import { setImmediate as turn } from 'node:timers/promises'
import type pg from 'pg'
import { findMentions, hashIdentifiers } from '../domain/identity/erasure.ts'
import type { Identifier } from '../domain/identity/identifiers.ts'
import { newEntryId } from '../domain/ids.ts'
import { headersWithoutAddresses, type IpMode, withoutAddresses } from '../domain/tenants/ip-addresses.ts'
import { DAY_MS } from '../domain/time.ts'
import { coalesce } from '../overload/coalesce.ts'
import type { WithDatabase } from '../overload/optional-database.ts'
import { insertRequests, insertRequestsNaming, type NewInboundRequest } from '../store/inbound/requests.ts'
import type { Source } from '../store/inbound/sources.ts'

/** A request in the form in which it was received. */
type KeptRequest = {
  receivedAt: Date
  /** As Node gives them: name, value, name, value … */
  rawHeaders: readonly string[]
  body: Buffer
  answer: object
  /** The identifiers in the request. Called only for tenants with suppressions. */
  names: () => Identifier[]
}

/** Stores requests to sources for developers who build handlers for them. */
export type Requests = {
  /** Resolves when the request is durable, or cannot be. Null if requests of this source are not stored. */
  keep(source: Source, request: KeptRequest): Promise<unknown> | null
}

// The first requests of a new source are stored even before `kontor listen` runs.
const NEW_MS = DAY_MS
const MAX_OF_NEW = 1_000
const MAX_SOURCES = 10_000
// About 5,000 events in 60 ms. For tenants with suppressions, larger requests are not searched and therefore not stored.
const MAX_SEARCHED_BYTES = 262_144
const FLUSHES = { maxItems: 200, maxBytes: 4_000_000, maxInFlight: 1, maxPendingBytes: 64_000_000 }

export function openRequests({ pool, withDatabase }: { pool: pg.Pool; withDatabase: WithDatabase }): Requests {
  const keptOfNew = new Map<string, number>()
  const writes = coalesce({
    async run(requests: Named[]) {
      const kept = await insertRequests(pool, requests)
      const left = requests.filter(({ id, body }) => !kept.has(id) && body.length <= MAX_SEARCHED_BYTES)
      const named: ReturnType<typeof withHashes>[] = []
      for (const request of left) {
        named.push(withHashes(request))
        // Lets other requests proceed.
        await turn()
      }
      if (named.length > 0) await insertRequestsNaming(pool, named)
      return requests
    },
    ...FLUSHES,
  })

  function isKept({ id, createdAt, listenedUntil }: Source, at: Date): boolean {
    if (listenedUntil !== null && listenedUntil > at) return true
    if (at.getTime() - createdAt.getTime() > NEW_MS) return false
    const kept = keptOfNew.get(id) ?? 0
    if (kept >= MAX_OF_NEW) return false
    if (keptOfNew.size >= MAX_SOURCES) keptOfNew.clear()
    keptOfNew.set(id, kept + 1)
    return true
  }

  return {
    keep(source, { receivedAt, rawHeaders, body, answer, names }) {
      if (!isKept(source, receivedAt)) return null
      const request = {
        ...{ tenantId: source.tenantId, sourceId: source.id, receivedAt },
        id: newEntryId(receivedAt.getTime()),
        headers: JSON.stringify(keptHeaders(source.ipAddresses, rawHeaders)),
        body: keptBody(source.ipAddresses, body),
        answer: JSON.stringify(answer),
        names,
      }
      return withDatabase<unknown>(
        () => writes.submit([request], body.length),
        () => undefined,
      )
    },
  }
}

type Named = NewInboundRequest & Pick<KeptRequest, 'names'>

function withHashes({ names, ...request }: Named) {
  const all = [...names(), ...findMentions(request.headers)]
  return { ...request, hashes: hashIdentifiers(request.tenantId, all) }
}

// Authorization contains the source's token or secret. Signatures stay, because the handler of the request checks them.
const CREDENTIALS = new Set(['authorization', 'proxy-authorization', 'cookie', 'x-api-key', 'x-write-key'])

function keptHeaders(mode: IpMode, rawHeaders: readonly string[]): [string, string][] {
  const headers: [string, string][] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const key = name.toLowerCase()
    if (CREDENTIALS.has(key)) continue
    const value = headersWithoutAddresses(mode, { [key]: rawHeaders[i + 1]! })[key]
    if (value !== undefined) headers.push([name, value])
  }
  return headers
}

/** Unchanged, unless the tenant stores no addresses and the body contains some. */
function keptBody(mode: IpMode, body: Buffer): Buffer {
  if (mode === 'keep') return body
  const text = body.toString()
  const without = withoutAddresses(mode, text)
  return without === text ? body : Buffer.from(without)
}
