import type { FastifyRequest } from 'fastify'
import type { Admin, AdminFor } from '../../admin/admin.ts'

/** What the operator who sends a request may do, in the name of the key. */
export type AdminOf = (request: FastifyRequest) => Admin

export function adminOf(adminFor: AdminFor): AdminOf {
  return ({ adminKey, ip, id }) => {
    const { tenantId, role } = adminKey
    return adminFor({ name: adminKey.id, role: role ?? 'viewer', tenantId, ip, requestId: id })
  }
}
