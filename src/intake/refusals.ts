import type pg from 'pg'
import { failureCause } from '../domain/entries/dead-letters.ts'
import { IDENTIFIER_KINDS, parseEmail } from '../domain/identity/identity.ts'
import { hashIdentifier } from '../domain/identity/suppression.ts'
import { HOUR_MS } from '../domain/time.ts'
import {
  addRefusals,
  insertRefusalExamples,
  type RefusalExample,
  type RefusalSum,
} from '../store/entries/refusals.ts'
import { findSuppressed, findSuppressingTenants } from '../store/identity/suppressions.ts'

/** Why a request, or an item of one, was refused; `example` is called for few of them. */
export type Refusal = Pick<RefusalExample, 'tenantId' | 'keyId' | 'route' | 'status' | 'code' | 'detail'> & {
  at: Date
  example(): Pick<RefusalExample, 'ip' | 'userAgent' | 'bytes' | 'body'>
}

/**
 * Requests with a known key that were refused: all of them counted by cause, a few kept as examples. In memory until they are
 * written, many at a time: a flood of bad requests costs a row for each cause.
 */
export type Refusals = {
  note(refusal: Refusal): void
  /** Writes what has gathered. */
  write(): Promise<void>
}

// The first few of a minute tell the story.
const SAMPLE = 5
const WINDOW_MS = 60_000
const MAX_SUMS = 10_000
const MAX_EXAMPLES = 1_000
// Of a tenant in an hour. Causes are made of what was sent: what comes beyond stands under its code.
const MAX_CAUSES = 50

export function openRefusals({ pool, now }: { pool: pg.Pool; now: () => Date }): Refusals {
  let sums = new Map<string, RefusalSum>()
  let examples: RefusalExample[] = []
  const samples = new Map<string, { windowEnds: number; taken: number }>()
  const causes = new Map<number, Set<string>>()
  let causesOf = 0

  function boundedCause({ tenantId, detail, code }: Refusal, hour: number): string {
    if (hour !== causesOf) causes.clear()
    causesOf = hour
    const cause = failureCause(detail)
    const known = causes.get(tenantId) ?? new Set()
    causes.set(tenantId, known)
    if (!known.has(cause) && known.size >= MAX_CAUSES) return code
    known.add(cause)
    return cause
  }

  function count({ tenantId, route, code, at }: Refusal, hour: number, cause: string): void {
    const key = `${tenantId} ${hour} ${route} ${code} ${cause}`
    const sum = sums.get(key)
    if (sum) {
      sum.count++
      sum.lastAt = at
    } else if (sums.size < MAX_SUMS)
      sums.set(key, {
        ...{ tenantId, hour: new Date(hour), route, code, cause },
        ...{ count: 1, firstAt: at, lastAt: at },
      })
  }

  function isSampled(key: string, at: number): boolean {
    const known = samples.get(key)
    const sample = known && known.windowEnds > at ? known : { windowEnds: at + WINDOW_MS, taken: 0 }
    if (sample !== known) samples.set(key, sample)
    return sample.taken++ < SAMPLE && examples.length < MAX_EXAMPLES
  }

  return {
    note(refusal) {
      const { at, example, ...facts } = refusal
      const hour = Math.floor(at.getTime() / HOUR_MS) * HOUR_MS
      const cause = boundedCause(refusal, hour)
      count(refusal, hour, cause)
      if (isSampled(`${facts.tenantId} ${facts.route} ${cause}`, at.getTime()))
        examples.push({ ...facts, cause, rejectedAt: at, ...example() })
    },
    async write() {
      const [counted, shown] = [[...sums.values()], examples]
      sums = new Map()
      examples = []
      const moment = now().getTime()
      for (const [key, { windowEnds }] of samples) if (windowEnds <= moment) samples.delete(key)
      if (counted.length > 0) await addRefusals(pool, counted)
      if (shown.length > 0) await insertRefusalExamples(pool, await withoutSuppressed(pool, shown))
    },
  }
}

/** Examples without the bodies that may name somebody who is not to be recorded. */
async function withoutSuppressed(pool: pg.Pool, examples: RefusalExample[]): Promise<RefusalExample[]> {
  const tenants = await findSuppressingTenants(pool, [...new Set(examples.map(({ tenantId }) => tenantId))])
  const hashes = examples.map(({ tenantId, body }) =>
    tenants.has(tenantId) && body !== null
      ? namesIn(body).map(name => ({ tenantId, hash: hashIdentifier(tenantId, name) }))
      : [],
  )
  const wanted = hashes.flat()
  if (wanted.length === 0) return examples
  const found = await findSuppressed(pool, wanted)
  return examples.map((example, index) => {
    const names = hashes[index]!
    const isNamed = names.some(({ tenantId, hash }) => found.has(`${tenantId} ${hash.toString('hex')}`))
    // What could not be read is quoted in the reason.
    return isNamed ? { ...example, body: null, detail: example.cause } : example
  })
}

const QUOTED = /"((?:[^"\\]|\\.)*)"/g
const DELIMITERS = /[\s"'{}[\]:,=&;<>()\\]+/

/** Whatever could be a name in what may not even be JSON: as it is written, and with what is escaped in it read. */
function namesIn(body: string) {
  const read = unescaped(body)
  const values = new Set<string>()
  for (const [, quoted = ''] of body.matchAll(QUOTED)) values.add(quoted.trim()).add(unescaped(quoted).trim())
  // JSON may stand in JSON.
  for (const text of [body, read, unescaped(read)])
    for (const word of text.split(DELIMITERS)) values.add(word)
  for (const value of [...values]) {
    const email = parseEmail(value)
    if (email !== null) values.add(email)
  }
  return [...values].flatMap(value => IDENTIFIER_KINDS.map(kind => ({ kind, value })))
}

/** \u0040 is @. */
function unescaped(text: string): string {
  return text.replace(/\\(?:u([\da-f]{4})|(.))/gi, (_, code?: string, char = '') =>
    code === undefined ? char : String.fromCharCode(Number.parseInt(code, 16)),
  )
}
