import type { FastifyRequest } from 'fastify'
import type { App } from './app.ts'
import type { Contention } from './contention.ts'

/**
 * Tenants take turns. A request costs a process most before it waits for its commit, and requests are served as they come: a
 * tenant with a hundred connections would hold up the one request of its neighbour by a hundred. So while more than one
 * tenant has requests, no more than `capacity` is under way, and whoever has less than an equal part of it never waits, nor
 * whoever has used less than an equal part lately.
 */
export type Turns = {
  /**
   * Calls back when it is the turn of a request of that weight, at once if it is now. Returns how to leave before it is.
   * Whoever is not known takes turns like a tenant, and is none: anybody could slow a tenant that is alone by sending something.
   */
  take(tenant: string, weight: number, run: () => void, isKnown?: boolean): () => void
  give(tenant: string, weight: number): void
  underWay(): number
  waiting(): number
}

// A tenant that has asked for nothing for so long does not share.
const REMEMBERED_MS = 1_000
// Of what was used so long ago a third still counts.
const LATELY_MS = 500

type Waiting = { weight: number; run: () => void }
type Tenant = { isKnown: boolean; underWay: number; used: Used; lastAt: number; waiting: Waiting[] }

type TurnsOptions = {
  /** While tenants share: so much, or what there is room for. */
  capacity: number | Contention
  /** For as long as there is one tenant. */
  aloneCapacity?: number
  rememberedMs?: number
  now?: () => number
}

export function openTurns({
  capacity,
  aloneCapacity = Number.POSITIVE_INFINITY,
  rememberedMs = REMEMBERED_MS,
  now = () => performance.now(),
}: TurnsOptions): Turns {
  const contention = typeof capacity === 'number' ? always(capacity) : capacity
  const tenants = new Map<string, Tenant>()
  let knownTenants = 0
  const usedByAll = new Used()
  let total = 0
  let waitingCount = 0
  let forgetAt = 0
  let isStarting = false

  /** Those who have asked a moment ago; the others are forgotten. */
  function active(at: number): number {
    if (at < forgetAt) return knownTenants
    forgetAt = at + rememberedMs
    for (const [name, { isKnown, underWay, lastAt, waiting }] of tenants) {
      if (underWay > 0 || waiting.length > 0 || at - lastAt <= rememberedMs) continue
      tenants.delete(name)
      if (isKnown) knownTenants--
    }
    return knownTenants
  }

  function isFree(tenant: Tenant, at: number): boolean {
    const sharing = active(at)
    if (sharing < 2) return total < aloneCapacity
    const capacity = contention.capacity()
    return (
      total < capacity ||
      tenant.underWay < capacity / sharing ||
      (tenant.underWay < contention.most / sharing && usesLittle(tenant, sharing, at))
    )
  }

  /** Less than an equal part. Of strangers there may be any number, each with an address of its own. */
  function usesLittle({ isKnown, used }: Tenant, sharing: number, at: number): boolean {
    return isKnown && used.at(at) * sharing < usedByAll.at(at)
  }

  function start(tenant: Tenant, { weight, run }: Waiting, at: number): void {
    tenant.underWay += weight
    total += weight
    tenant.used.add(weight, at)
    usedByAll.add(weight, at)
    run()
  }

  /** Who has least under way, of those who wait. */
  function nextTenant(): Tenant | null {
    let next: Tenant | null = null
    for (const tenant of tenants.values())
      if (tenant.waiting.length > 0 && (next === null || tenant.underWay < next.underWay)) next = tenant
    return next
  }

  function startWaiting(): void {
    // What is refused as soon as it starts gives its turn back from within: a thousand of them would be one stack.
    if (isStarting) return
    isStarting = true
    try {
      const at = now()
      for (let next = nextTenant(); next !== null && isFree(next, at); next = nextTenant()) {
        waitingCount--
        start(next, next.waiting.shift()!, at)
      }
    } finally {
      isStarting = false
    }
  }

  return {
    take(name, weight, run, isKnown = true) {
      const at = now()
      let tenant = tenants.get(name)
      if (!tenant) {
        tenant = { isKnown, underWay: 0, used: new Used(), lastAt: at, waiting: [] }
        tenants.set(name, tenant)
        if (isKnown) knownTenants++
      }
      tenant.lastAt = at
      const request = { weight, run }
      // Nobody overtakes those of the same tenant.
      if (tenant.waiting.length === 0 && isFree(tenant, at)) {
        start(tenant, request, at)
        return () => undefined
      }
      const { waiting } = tenant
      waiting.push(request)
      waitingCount++
      contention.waits()
      return () => {
        const index = waiting.indexOf(request)
        if (index < 0) return
        waiting.splice(index, 1)
        waitingCount--
      }
    },
    give(name, weight) {
      const tenant = tenants.get(name)!
      tenant.underWay -= weight
      total -= weight
      if (waitingCount > 0) startWaiting()
    },
    underWay: () => total,
    waiting: () => waitingCount,
  }
}

/** What was used, the less the longer ago. */
class Used {
  #amount = 0
  #countedAt = 0

  at(now: number): number {
    return this.#amount * Math.exp((this.#countedAt - now) / LATELY_MS)
  }

  add(amount: number, now: number): void {
    this.#amount = this.at(now) + amount
    this.#countedAt = now
  }
}

function always(capacity: number): Contention {
  return { capacity: () => capacity, most: capacity, waits: () => undefined }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Gives the turn back; null where it has none, or no more. */
    endTurn: (() => void) | null
  }
}

// A batch of a hundred events costs as much as a dozen single ones.
const BYTES_OF_ONE = 4_096
const MAX_WEIGHT = 12

/**
 * Hooks for a surface: a write whose body is there waits for its turn before it is read. Not earlier: whoever sends slowly would
 * keep a turn for as long.
 */
export function takeTurns(app: App, turns: Turns): void {
  app.decorateRequest('endTurn', null)
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.heldBytes === 0) return done()
    const tenant = tenantOf(request)
    const weight = weightOf(request.heldBytes)
    const begin = () => {
      request.endTurn = () => {
        request.endTurn = null
        turns.give(tenant, weight)
      }
      done()
    }
    turns.take(tenant, weight, begin, Boolean(request.caller))
  })
  // Every request comes by here once, answered or refused, also those that have hung up.
  app.addHook('onSend', (request, _reply, _payload, done) => {
    request.endTurn?.()
    done()
  })
}

/** The key may be in the body: whoever sent it then stands for the tenant. */
export function tenantOf({ caller, ip }: FastifyRequest): string {
  return caller ? String(caller.tenantId) : ip
}

function weightOf(bytes: number): number {
  return Math.min(MAX_WEIGHT, 1 + Math.floor(bytes / BYTES_OF_ONE))
}
