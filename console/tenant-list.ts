import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { tenants } from './api/admin.ts'
import type { Tenant } from './api/types.ts'
import { chooseTenant, isAdmin, tenant } from './session.ts'
import { addressedTenant } from './view.ts'

const known = signal<Tenant[] | null>(null)

/** The tenants, once loaded; empty with a private key. */
export const knownTenants: ReadonlySignal<Tenant[] | null> = known

/** Whether the address names a tenant that does not exist, or that the person may not see. */
export const isUnknownTenant = computed(
  () =>
    isAdmin.value &&
    known.value !== null &&
    known.value.length > 0 &&
    !known.value.some(({ id }) => id === tenant.value),
)

let requested: ReturnType<typeof tenants.list> | null = null

/** Requests the tenants before it is known whether the session is still valid. */
export function requestTenants(): void {
  requested = tenants.list()
  requested.catch(() => {})
}

/** Loads the tenants at the start of a session. */
export async function readTenants(): Promise<void> {
  const early = requested
  requested = null
  const found = isAdmin.peek() ? (await (early ?? tenants.list())).results : []
  // An address of another tenant is never answered with the data of this one: the frame says so.
  const wanted = addressedTenant.peek() ?? tenant.peek()
  const isFound = found.some(({ id }) => id === wanted)
  if (isAdmin.peek()) chooseTenant(isFound || addressedTenant.peek() !== null ? wanted : (found[0]?.id ?? null))
  known.value = found
}

export function forgetTenants(): void {
  known.value = null
  requested = null
}
