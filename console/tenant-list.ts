import { type ReadonlySignal, signal } from '@preact/signals'
import { tenants } from './api/admin.ts'
import type { Tenant } from './api/types.ts'
import { chooseTenant, isAdmin, tenant } from './session.ts'

const known = signal<Tenant[] | null>(null)

/** The tenants, once loaded; empty with a private key. */
export const knownTenants: ReadonlySignal<Tenant[] | null> = known

/** Loads the tenants at the start of a session. */
export async function readTenants(): Promise<void> {
  const found = isAdmin.peek() ? (await tenants.list()).results : []
  if (isAdmin.peek() && !found.some(({ id }) => id === tenant.peek())) chooseTenant(found[0]?.id ?? null)
  known.value = found
}

export function forgetTenants(): void {
  known.value = null
}
