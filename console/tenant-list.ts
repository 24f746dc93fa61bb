import { type ReadonlySignal, signal } from '@preact/signals'
import { tenants } from './api/admin.ts'
import type { Tenant } from './api/types.ts'
import { chooseTenant, isAdmin, tenant } from './session.ts'

const known = signal<Tenant[] | null>(null)

/** The tenants there are, once that is known; none for a private key. */
export const knownTenants: ReadonlySignal<Tenant[] | null> = known

/** A session begins with whose data there is. */
export async function readTenants(): Promise<void> {
  const found = isAdmin.peek() ? (await tenants.list()).results : []
  if (isAdmin.peek() && !found.some(({ id }) => id === tenant.peek())) chooseTenant(found[0]?.id ?? null)
  known.value = found
}

export function forgetTenants(): void {
  known.value = null
}
