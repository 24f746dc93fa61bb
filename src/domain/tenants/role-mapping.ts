import type { Role } from './roles.ts'

/** A user with this value in the role claim gets this role, for one tenant (by id or name) or for all. */
export type RoleMapping = { value: string; role: Role; tenant: string | null }
