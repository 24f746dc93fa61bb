import type { FastifyRequest } from 'fastify'
import type { Admin, AdminFor } from '../../admin/admin.ts'

/** The admin actions of the caller, in the name of the key or the console user. */
export type AdminOf = (request: FastifyRequest) => Admin

export function adminOf(adminFor: AdminFor): AdminOf {
  return ({ operator, ip, id }) => adminFor({ ...operator, ip, requestId: id })
}
