import type { FastifyRequest } from 'fastify'
import type { Admin, AdminFor } from '../../admin/admin.ts'

/** The admin actions of the caller, in the name of the key or the console user. */
export type RequestAdmin = (request: FastifyRequest) => Admin

export function createRequestAdmin(adminFor: AdminFor): RequestAdmin {
  return ({ operator, ip, id }) => adminFor({ ...operator, ip, requestId: id })
}
