import type pg from 'pg'
import type { Log } from '../log/log.ts'
import type { Actor } from './actor.ts'
import { type AlertAdmin, alertAdmin } from './alerts.ts'
import { type AuditAdmin, auditAdmin } from './audit.ts'
import { type DeadLetterAdmin, deadLetterAdmin } from './dead-letters.ts'
import { type DestinationAdmin, destinationAdmin } from './destinations.ts'
import { type ErasureAdmin, erasureAdmin, type SuppressionAdmin, suppressionAdmin } from './erasures.ts'
import { type HealthAdmin, healthAdmin } from './health.ts'
import { type KeyAdmin, keyAdmin } from './keys.ts'
import { type PeopleAdmin, peopleAdmin } from './people.ts'
import { type PolicyAdmin, policyAdmin } from './policies.ts'
import { type PurgeAdmin, purgeAdmin } from './purges.ts'
import { type RateAdmin, rateAdmin } from './rates.ts'
import { type ReceiptAdmin, type ReceivedRequestAdmin, receiptAdmin, receivedRequestAdmin } from './receipts.ts'
import type { Secrets } from './secrets.ts'
import { type SourceTestAdmin, sourceTestAdmin } from './source-test.ts'
import { type SourceAdmin, sourceAdmin } from './sources.ts'
import { type SqlAccessAdmin, sqlAccessAdmin } from './sql-access.ts'
import { type TenantAdmin, tenantAdmin } from './tenants.ts'

/** All operator actions, shared by the command line and the admin API. */
export type Admin = {
  tenants: TenantAdmin
  health: HealthAdmin
  alerts: AlertAdmin
  policies: PolicyAdmin
  rates: RateAdmin
  keys: KeyAdmin
  sources: SourceAdmin
  sourceTests: SourceTestAdmin
  destinations: DestinationAdmin
  receipts: ReceiptAdmin
  receivedRequests: ReceivedRequestAdmin
  deadLetters: DeadLetterAdmin
  people: PeopleAdmin
  erasures: ErasureAdmin
  suppressions: SuppressionAdmin
  purges: PurgeAdmin
  sqlAccess: SqlAccessAdmin
  audit: AuditAdmin
}

/** The audit log records every change under the actor's name. */
export type AdminFor = (actor: Actor) => Admin

export function openAdmin({
  pool,
  log,
  secrets,
  allowPrivateDestinations = false,
  logRetentionMs = null,
}: {
  pool: pg.Pool
  log: Log
  secrets: Secrets
  allowPrivateDestinations?: boolean
  /** How long the log keeps raw requests. */
  logRetentionMs?: number | null
}): AdminFor {
  return actor => ({
    tenants: tenantAdmin({ pool, actor }),
    health: healthAdmin({ pool, log, actor }),
    alerts: alertAdmin({ pool, actor }),
    policies: policyAdmin({ pool, actor }),
    rates: rateAdmin({ pool, actor }),
    keys: keyAdmin({ pool, actor }),
    sources: sourceAdmin({ pool, secrets, actor }),
    sourceTests: sourceTestAdmin({ pool, log, actor }),
    destinations: destinationAdmin({ pool, secrets, actor, allowPrivate: allowPrivateDestinations }),
    receipts: receiptAdmin({ pool, actor }),
    receivedRequests: receivedRequestAdmin({ pool, log, actor, logRetentionMs }),
    deadLetters: deadLetterAdmin({ pool, log, actor }),
    people: peopleAdmin({ pool, actor }),
    erasures: erasureAdmin({ pool, log, actor }),
    suppressions: suppressionAdmin({ pool, actor }),
    purges: purgeAdmin({ pool, log, actor }),
    sqlAccess: sqlAccessAdmin({ pool, actor }),
    audit: auditAdmin({ pool, actor }),
  })
}
