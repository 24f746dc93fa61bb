import type { FastifyRequest } from 'fastify'

export function wantsCsv(request: FastifyRequest): boolean {
  return /\btext\/csv\b/i.test(request.headers.accept ?? '')
}
