import type pg from 'pg'
import type { Log } from '../log/log.ts'
import { type DeadLetterAdmin, deadLetterAdmin } from './dead-letters.ts'
import { type ErasureAdmin, erasureAdmin } from './erasure.ts'
import { type KeyAdmin, keyAdmin } from './keys.ts'
import { type ReceiptAdmin, receiptAdmin } from './receipts.ts'
import type { Secrets } from './secrets.ts'
import { type SourceTestAdmin, sourceTestAdmin } from './source-test.ts'
import { type SourceAdmin, sourceAdmin } from './sources.ts'
import { type TenantAdmin, tenantAdmin } from './tenants.ts'

/** What operators do, for the command line and the admin API alike. */
export type Admin = {
  tenants: TenantAdmin
  keys: KeyAdmin
  sources: SourceAdmin
  sourceTests: SourceTestAdmin
  receipts: ReceiptAdmin
  deadLetters: DeadLetterAdmin
  erasures: ErasureAdmin
}

export function openAdmin({ pool, log, secrets }: { pool: pg.Pool; log: Log; secrets: Secrets }): Admin {
  return {
    tenants: tenantAdmin({ pool }),
    keys: keyAdmin({ pool }),
    sources: sourceAdmin({ pool, secrets }),
    sourceTests: sourceTestAdmin({ pool, log }),
    receipts: receiptAdmin({ pool }),
    deadLetters: deadLetterAdmin({ pool, log }),
    erasures: erasureAdmin({ pool }),
  }
}
