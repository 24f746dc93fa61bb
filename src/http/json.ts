import type { FastifyReply } from 'fastify'

/** Text that is JSON already goes out as it is. */
export function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(text)
}
