import type { EntityType } from '../domain/records/records.ts'
import type { Item, Rejection } from './row.ts'
import type { Answer, Send } from './send.ts'

export type Outcome = { accepted: number; duplicates: number; rejected: Rejection[] }

/** Sends items to one of the public APIs, with bounds for one request. */
export type Target = { maxItems: number; maxBytes: number; deliver(items: Item[]): Promise<Outcome> }

const NOTHING: Outcome = { accepted: 0, duplicates: 0, rejected: [] }

export function recordTarget(send: Send, key: string, entityType: EntityType): Target {
  const path = `/v1/${entityType}s/batch`
  const post = (items: Item[]) => send({ path, key, type: 'application/x-ndjson', text: lines(items) })
  return {
    maxItems: 500,
    maxBytes: 6 * 1_048_576,
    deliver: items =>
      divided(items, post, (sent, { body }) => recordOutcome(sent, body.results as RecordResult[])),
  }
}

type Faults = { pointer: string; message: string }[]
type RecordResult = { accepted: boolean; duplicate?: boolean; errors?: Faults }

function recordOutcome(items: Item[], results: RecordResult[]): Outcome {
  const outcome = { accepted: 0, duplicates: 0, rejected: [] as Rejection[] }
  for (const [index, { accepted, duplicate, errors }] of results.entries()) {
    if (!accepted) outcome.rejected.push(rejectionOf(items[index]!, errors ?? []))
    else if (duplicate) outcome.duplicates++
    else outcome.accepted++
  }
  return outcome
}

/** Number of sent ids to remember: an event that was just sent is not yet found as processed. */
const REMEMBERED_IDS = 100_000

export function eventTarget(
  send: Send,
  key: string,
  /** Returns the event ids that are already processed. */
  known: (ids: string[]) => Promise<Set<string>>,
): Target {
  const sentIds = new Set<string>()
  const post = (items: Item[]) =>
    send({ path: '/v1/batch', key, type: 'application/json', text: `{"batch":${array(items)}}` })
  return {
    maxItems: 500,
    maxBytes: 900_000,
    async deliver(items) {
      const fresh = items.filter(({ id }) => !sentIds.has(id) && sentIds.add(id))
      const there = fresh.length > 0 ? await known(fresh.map(({ id }) => id)) : new Set()
      const wanted = fresh.filter(({ id }) => !there.has(id))
      for (const id of sentIds) {
        if (sentIds.size <= REMEMBERED_IDS) break
        sentIds.delete(id)
      }
      const outcome = wanted.length > 0 ? await divided(wanted, post, eventOutcome) : NOTHING
      return { ...outcome, duplicates: outcome.duplicates + items.length - wanted.length }
    },
  }
}

type RejectedItems = { rejected?: { index: number; message: string }[]; rejected_total?: number }

/** Null if the response does not list all rejections. */
function eventOutcome(items: Item[], { body }: Answer): Outcome | null {
  const { rejected = [], rejected_total: total } = body as RejectedItems
  if (total !== undefined) return null
  const named = rejected.map(({ index, message }) => ({
    line: items[index]!.line,
    column: null,
    reason: message,
  }))
  return { accepted: items.length - named.length, duplicates: 0, rejected: named }
}

export function sourceTarget(send: Send, { path, token }: { path: string; token: string }): Target {
  const post = (items: Item[]) => send({ path, key: token, type: 'application/json', text: array(items) })
  return {
    maxItems: 200,
    maxBytes: 900_000,
    deliver: items =>
      divided(items, post, (sent, answer) => {
        const { accepted, duplicates, deferred } = answer.body as Record<string, number>
        const outcome = eventOutcome(sent, answer)
        return outcome && { ...outcome, accepted: accepted! + (deferred ?? 0), duplicates: duplicates! }
      }),
  }
}

const lines = (items: Item[]) => items.map(({ text }) => text).join('\n')
const array = (items: Item[]) => `[${items.map(({ text }) => text).join(',')}]`

/** Bisects a rejected request to find the invalid items. Sending valid items twice adds nothing. */
async function divided(
  items: Item[],
  post: (items: Item[]) => Promise<Answer>,
  read: (items: Item[], answer: Answer) => Outcome | null,
): Promise<Outcome> {
  const answer = await post(items)
  const outcome = answer.status < 300 ? read(items, answer) : null
  if (outcome) return outcome
  if (items.length === 1) {
    const { errors, detail } = answer.body as { errors?: Faults; detail?: string }
    return { ...NOTHING, rejected: [rejectionOf(items[0]!, errors ?? [], detail)] }
  }
  const middle = items.length >> 1
  const first = await divided(items.slice(0, middle), post, read)
  const second = await divided(items.slice(middle), post, read)
  return {
    accepted: first.accepted + second.accepted,
    duplicates: first.duplicates + second.duplicates,
    rejected: [...first.rejected, ...second.rejected],
  }
}

function rejectionOf({ line }: Item, faults: Faults, detail = 'was rejected'): Rejection {
  const [fault] = faults
  if (!fault) return { line, column: null, reason: detail }
  return { line, column: fault.pointer.slice(1).replaceAll('/', '.') || null, reason: fault.message }
}
