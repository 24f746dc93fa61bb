import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problems } from './problems.ts'

/** Whether what is taken in can still be kept. */
export type Room = { isLow(): boolean }
/** Whether what was taken in is processed in time. */
export type BacklogState = { isFull(): boolean }

// Somebody has to make room.
const RETRY_AFTER_S = 30
// Some ten thousand entries are processed in it.
const RETRY_AFTER_BACKLOG_S = 5

type Done = (error?: Error) => void

/** An onRequest hook. Whoever sends keeps what is not taken in; a full disk would take what others had given. */
export function refuseWithoutRoom(disk: Room) {
  return (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
    done(isWrite(request) && disk.isLow() ? noRoom() : undefined)
  }
}

/** An onRequest hook: before the body is read, which would only add to the load. Reads go on. */
export function refuseWithBacklog(backlog: BacklogState) {
  return (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
    done(isWrite(request) && backlog.isFull() ? problems.backlogFull(RETRY_AFTER_BACKLOG_S) : undefined)
  }
}

function isWrite({ method }: FastifyRequest): boolean {
  return method !== 'OPTIONS' && method !== 'GET' && method !== 'HEAD'
}

function noRoom(): Problem {
  const detail = 'The disk is nearly full: nothing is taken in until there is room.'
  return problems.unavailable(detail, RETRY_AFTER_S)
}
