// Where overload control (src/overload) meets requests: hooks, and the problems that rejected requests get.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FairQueue } from '../overload/fair-queue.ts'
import { openFailureLimit } from '../overload/limits.ts'
import type { App } from './app.ts'
import { type Problem, problems } from './problems.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For a read that waits for new data. In the queue, it would occupy a slot that other reads of its tenant need. */
    skipsReadQueue?: boolean
  }
  interface FastifyRequest {
    /** What it holds of the write queue; null: it is not in the queue. */
    writeSlot: { tenant: string; weight: number } | null
    /** For a write that will wait for something else. */
    leaveWriteQueue(): void
    /** The name under which it holds a slot of the read queue. */
    readSlot: string | null
    /** Reads in a slot of its own, for data that is read after the response has started. */
    inReadQueue<T>(read: () => Promise<T>): Promise<T>
  }
}

export type DiskState = { isLow(): boolean }
export type BacklogState = { isFull(): boolean }
type Done = (error?: Error) => void

// An operator has to free space.
const RETRY_AFTER_FULL_DISK_S = 30
// Workers process some ten thousand entries in this time.
const RETRY_AFTER_FULL_BACKLOG_S = 5

/** An onRequest hook. The sender still has the data; on a full disk, accepted data could be lost. */
export function rejectOnFullDisk(disk: DiskState) {
  return (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
    const isRejected = !isRead(request) && disk.isLow()
    done(
      isRejected
        ? problems.unavailable(
            'The disk of the server is nearly full, so Kontor rejects writes. Free space on the disk, or retry later.',
            RETRY_AFTER_FULL_DISK_S,
          )
        : undefined,
    )
  }
}

/** An onRequest hook: it runs before the body is read, which would add to the load. Reads continue. */
export function rejectOnFullBacklog(backlog: BacklogState) {
  return (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
    const isRejected = !isRead(request) && backlog.isFull()
    done(isRejected ? problems.backlogFull(RETRY_AFTER_FULL_BACKLOG_S) : undefined)
  }
}

function isRead({ method }: FastifyRequest): boolean {
  return method === 'OPTIONS' || method === 'GET' || method === 'HEAD'
}

const RETRY_AFTER_FAILURE_S = 1

/** Only failed credentials are counted and rejected: valid ones from the same office or proxy are unaffected. */
export function limitFailedCredentials(perSecond: number | null): (problem: Problem, address: string) => Problem {
  if (perSecond === null) return problem => problem
  const isOverLimit = openFailureLimit(perSecond)
  return (problem, address) => {
    if (!isFailedCredential(problem) || !isOverLimit(address)) return problem
    return problems.tooManyRequests(
      RETRY_AFTER_FAILURE_S,
      'Too many requests with invalid credentials from this IP address. Valid credentials are unaffected.',
    )
  }
}

function isFailedCredential({ status, code }: Problem): boolean {
  return (status === 401 && code !== 'missing_credentials') || code === 'invitation_expired'
}

// A batch of a hundred events costs as much as a dozen single ones.
const BYTES_PER_WEIGHT = 4_096
const MAX_WEIGHT = 12

/** Hooks for a surface: a write enters the queue once its body has arrived, so that a slow sender holds no slot. */
export function queueWrites(app: App, queue: FairQueue): void {
  app.decorateRequest('writeSlot', null)
  app.decorateRequest('leaveWriteQueue', function leaveWriteQueue(this: FastifyRequest) {
    const { writeSlot } = this
    this.writeSlot = null
    if (writeSlot) queue.leave(writeSlot.tenant, writeSlot.weight)
  })
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.heldBytes === 0) return done()
    const { name: tenant, isAuthenticated } = writerOf(request)
    const weight = Math.min(MAX_WEIGHT, 1 + Math.floor(request.heldBytes / BYTES_PER_WEIGHT))
    const run = () => {
      // A function in its place kept every request alive until the next major garbage collection, which cost a fifth of the
      // processor time of a small write.
      request.writeSlot = { tenant, weight }
      done()
    }
    queue.enter(tenant, weight, run, isAuthenticated)
  })
  // Runs once for every request: answered, rejected or aborted.
  app.addHook('onSend', (request, _reply, _payload, done) => {
    request.leaveWriteQueue()
    done()
  })
}

// The same as for a connection of the pool.
const MAX_READ_WAIT_MS = 5_000

/** Hooks for a surface: a read holds a slot until its response starts. A client that reads slowly holds no slot. */
export function queueReads(app: App, queue: FairQueue, { waitMs = MAX_READ_WAIT_MS } = {}): void {
  app.decorateRequest('readSlot', null)
  app.decorateRequest('inReadQueue', function inReadQueue<T>(this: FastifyRequest, read: () => Promise<T>) {
    return readInQueue(queue, this, read)
  })
  app.addHook('preValidation', (request, reply, done) => {
    const { method, routeOptions } = request
    if ((method !== 'GET' && method !== 'HEAD') || routeOptions.config.skipsReadQueue) return done()
    const tenant = queueName(request)
    const run = () => {
      request.readSlot = tenant
      done()
    }
    const reject = () => done(problems.unavailable('Too many concurrent reads. Retry shortly.'))
    enterReadQueue(queue, { tenant, reply, waitMs, run, reject })
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    const { readSlot } = request
    request.readSlot = null
    if (readSlot) queue.leave(readSlot, 1)
    done()
  })
}

type Reader = {
  tenant: string
  reply: FastifyReply
  waitMs: number
  run: () => void
  reject: () => void
}

/** A client that disconnects while it waits is removed from the queue. */
function enterReadQueue(queue: FairQueue, { tenant, reply, waitMs, run, reject }: Reader): void {
  let isWaiting = true
  let timer: NodeJS.Timeout | undefined
  const cancel = queue.enter(tenant, 1, () => {
    stopWaiting()
    run()
  })
  function stopWaiting() {
    isWaiting = false
    clearTimeout(timer)
    reply.raw.off('close', giveUp)
  }
  function giveUp() {
    stopWaiting()
    cancel()
  }
  if (!isWaiting) return
  reply.raw.once('close', giveUp)
  timer = setTimeout(() => {
    giveUp()
    reject()
  }, waitMs)
}

async function readInQueue<T>(queue: FairQueue, request: FastifyRequest, read: () => Promise<T>): Promise<T> {
  const tenant = queueName(request)
  await new Promise<void>(resolve => queue.enter(tenant, 1, resolve))
  try {
    if (request.raw.socket.destroyed) throw new Error('The client disconnected')
    return await read()
  } finally {
    queue.leave(tenant, 1)
  }
}

/** A webhook without a token is authenticated by its signature, later: until then its source takes the place of the tenant. */
function writerOf(request: FastifyRequest): { name: string; isAuthenticated: boolean } {
  const { caller, target, isAuthenticated } = request
  if (!target) return { name: queueName(request), isAuthenticated: Boolean(caller) }
  return { name: isAuthenticated ? String(target.source.tenantId) : target.source.id, isAuthenticated }
}

/** A key in the body is not authenticated yet; until then, the sender's address takes the place of the tenant. */
function queueName({ caller, ip }: FastifyRequest): string {
  return caller ? String(caller.tenantId) : ip
}
