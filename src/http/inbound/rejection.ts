import type { FastifyRequest } from 'fastify'
import { keptAddress } from '../../domain/tenants/ip-addresses.ts'
import type { NewRejection } from '../../store/inbound/rejections.ts'
import type { RawBody } from '../body.ts'
import { refusalDetail, userAgentOf } from '../refused.ts'

const MAX_TEXT = 500

/** What operators of a source are shown of a refused request; null where nothing was refused. */
export function rejectionOf(request: FastifyRequest, now: Date): Omit<NewRejection, 'suppressed'> | null {
  const { problem, target } = request
  // 5xx is our fault, not the sender's.
  if (problem === null || target === null || problem.status >= 500) return null
  const { source } = target
  const ip = keptAddress(source.ipAddresses, request.ip)
  return {
    tenantId: source.tenantId,
    sourceId: source.id,
    rejectedAt: now,
    status: problem.status,
    code: problem.code === 'malformed_json' ? 'unparsable_json' : problem.code,
    detail: refusalDetail(problem, ip).slice(0, MAX_TEXT),
    ip,
    userAgent: userAgentOf(request, source.ipAddresses),
    bytes: bytesOf(request),
    isAuthenticated: request.isAuthenticated,
  }
}

function bytesOf(request: FastifyRequest): number | null {
  const body = request.body as RawBody | undefined
  const sent = body?.raw.length ?? Number(request.headers['content-length'])
  return Number.isSafeInteger(sent) ? Math.min(sent, 2_147_483_647) : null
}
