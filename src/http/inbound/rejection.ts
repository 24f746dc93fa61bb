import type { FastifyRequest } from 'fastify'
import { faultText } from '../../domain/fault.ts'
import { keptAddress } from '../../domain/tenants/ip-addresses.ts'
import type { NewRejection } from '../../store/inbound/rejections.ts'
import type { RawBody } from '../body.ts'
import { ADDRESS_NOT_ALLOWED, type Problem, problems } from '../problems.ts'

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
    detail: detailOf(problem, ip).slice(0, MAX_TEXT),
    ip,
    userAgent: request.headers['user-agent']?.slice(0, MAX_TEXT) ?? null,
    bytes: bytesOf(request),
  }
}

function detailOf({ code, detail, errors }: Problem, ip: string | null): string {
  // The reason names the address: here as the tenant keeps it.
  if (code === ADDRESS_NOT_ALLOWED) return problems.addressNotAllowed(ip ?? 'its address').detail
  const faults = errors?.map(faultText)
  return faults && faults.length > 1 ? `${detail} ${faults.join('; ')}` : detail
}

function bytesOf(request: FastifyRequest): number | null {
  const body = request.body as RawBody | undefined
  const sent = body?.raw.length ?? Number(request.headers['content-length'])
  return Number.isSafeInteger(sent) ? Math.min(sent, 2_147_483_647) : null
}
