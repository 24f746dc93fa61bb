import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'

/** Text that is JSON already goes out as it is. */
export function sendJson(reply: FastifyReply, text: string | Readable): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(text)
}
