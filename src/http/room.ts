import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, problems } from './problems.ts'

/** Whether what is taken in can still be kept. */
export type Room = { isLow(): boolean }

// Somebody has to make room.
const RETRY_AFTER_S = 30

/** An onRequest hook. Whoever sends keeps what is not taken in; a full disk would take what others had given. */
export function refuseWithoutRoom(disk: Room) {
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const isRefused = request.method !== 'OPTIONS' && disk.isLow()
    done(isRefused ? noRoom() : undefined)
  }
}

function noRoom(): Problem {
  const detail = 'The disk is nearly full: nothing is taken in until there is room.'
  return problems.unavailable(detail, RETRY_AFTER_S)
}
