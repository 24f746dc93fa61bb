import type pg from 'pg'
import { type ErasureAdmin, erasureAdmin } from './erasure.ts'
import { type KeyAdmin, keyAdmin } from './keys.ts'
import type { Secrets } from './secrets.ts'
import { type SourceAdmin, sourceAdmin } from './sources.ts'
import { type TenantAdmin, tenantAdmin } from './tenants.ts'

/** What the command line, the admin API and the console do to tenants, keys and sources, and for people. */
export type Admin = { tenants: TenantAdmin; keys: KeyAdmin; sources: SourceAdmin; erasures: ErasureAdmin }

export function openAdmin({ pool, secrets }: { pool: pg.Pool; secrets: Secrets }): Admin {
  return {
    tenants: tenantAdmin({ pool }),
    keys: keyAdmin({ pool }),
    sources: sourceAdmin({ pool, secrets }),
    erasures: erasureAdmin({ pool }),
  }
}
