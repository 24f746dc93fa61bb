import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from './app.ts'
import { problems } from './problems.ts'
import { openTurns, type Turns, tenantOf } from './turns.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of a read that waits for something to happen: it would keep the others of its tenant from reading for as long. */
    takesNoTurn?: boolean
  }
  interface FastifyRequest {
    /** Whose turn it has. */
    readTurn: string | null
    /** For what is read once the answer has begun. */
    inTurn<T>(read: () => Promise<T>): Promise<T>
  }
}

// As long as for a connection of the pool.
const WAIT_MS = 5_000
// People look at a page, and then at the next.
const REMEMBERED_MS = 10_000
// Of the connections: the others are for whoever comes next, for writes and for jobs.
const PART_FOR_READS = 0.8
// It hears of changed configuration.
const CONNECTIONS_IN_USE = 1

/**
 * A read more than there are connections would wait for one at the pool, behind all that came before: it waits here instead,
 * where tenants take turns. With 10 connections and 100 readers of lists of 1.5 MB, the small read of a neighbour took 5.5 s
 * or was refused. With as many lists at once as there are connections for reads it took 150 to 450 ms, with half of them
 * beside others 40 to 50 ms (5 ms alone), and the lists came no slower.
 */
export function openReadTurns(poolSize: number): Turns {
  const connections = Math.max(1, Math.floor((poolSize - CONNECTIONS_IN_USE) * PART_FOR_READS))
  return openTurns({
    capacity: Math.ceil(connections / 2),
    aloneCapacity: connections,
    rememberedMs: REMEMBERED_MS,
  })
}

/** Hooks for a surface: a read has its turn until its answer begins. Whoever reads an answer slowly keeps no turn. */
export function takeReadTurns(app: App, turns: Turns, { waitMs = WAIT_MS } = {}): void {
  app.decorateRequest('readTurn', null)
  app.decorateRequest('inTurn', function inTurn<T>(this: FastifyRequest, read: () => Promise<T>) {
    return readInTurn(turns, this, read)
  })
  app.addHook('preValidation', (request, reply, done) => {
    if (!takesTurn(request)) return done()
    const tenant = tenantOf(request)
    const begin = () => {
      request.readTurn = tenant
      done()
    }
    const refuse = () => done(problems.unavailable('Too many read at once: try again soon.'))
    takeTurn(turns, { tenant, reply, waitMs, begin, refuse })
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    const { readTurn } = request
    request.readTurn = null
    if (readTurn) turns.give(readTurn, 1)
    done()
  })
}

type Reader = {
  tenant: string
  reply: FastifyReply
  waitMs: number
  begin: () => void
  refuse: () => void
}

/** Whoever hangs up while waiting is forgotten: nobody is there to be answered. */
function takeTurn(turns: Turns, { tenant, reply, waitMs, begin, refuse }: Reader): void {
  let isWaiting = true
  let timer: NodeJS.Timeout | undefined
  const leave = turns.take(tenant, 1, () => {
    stopWaiting()
    begin()
  })
  function stopWaiting() {
    isWaiting = false
    clearTimeout(timer)
    reply.raw.off('close', hangUp)
  }
  function hangUp() {
    stopWaiting()
    leave()
  }
  if (!isWaiting) return
  reply.raw.once('close', hangUp)
  timer = setTimeout(() => {
    hangUp()
    refuse()
  }, waitMs)
}

async function readInTurn<T>(turns: Turns, request: FastifyRequest, read: () => Promise<T>): Promise<T> {
  const tenant = tenantOf(request)
  await new Promise<void>(resolve => turns.take(tenant, 1, resolve))
  try {
    if (request.raw.socket.destroyed) throw new Error('The client hung up')
    return await read()
  } finally {
    turns.give(tenant, 1)
  }
}

function takesTurn({ method, routeOptions }: FastifyRequest): boolean {
  return (method === 'GET' || method === 'HEAD') && !routeOptions.config.takesNoTurn
}
