import type { FastifyRequest } from 'fastify'
import type { Admin, AdminFor } from '../../admin/admin.ts'

/** What the operator who sends a request may do, in the name of the key or the person. */
export type AdminOf = (request: FastifyRequest) => Admin

export function adminOf(adminFor: AdminFor): AdminOf {
  return ({ operator, ip, id }) => adminFor({ ...operator, ip, requestId: id })
}
