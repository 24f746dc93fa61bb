import type { Role } from './roles.ts'

/** Whoever has this value in the role claim has this role; for one tenant (by id or name), or for all. */
export type RoleMapping = { value: string; role: Role; tenant: string | null }
