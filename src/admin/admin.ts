import type pg from 'pg'
import type { Log } from '../log/log.ts'
import type { MailSettings } from '../pipeline/deliveries/mail.ts'
import { accountAdmin } from './accounts.ts'
import type { Actor } from './actor.ts'
import { alertAdmin } from './alerts.ts'
import { auditAdmin } from './audit.ts'
import { bookAdmin } from './books.ts'
import { deadLetterAdmin } from './dead-letters.ts'
import { destinationAdmin } from './destinations.ts'
import { digestAdmin } from './digests.ts'
import { erasureAdmin, suppressionAdmin } from './erasures.ts'
import { healthAdmin } from './health.ts'
import { keyAdmin } from './keys.ts'
import { peopleAdmin } from './people.ts'
import { policyAdmin } from './policies.ts'
import { purgeAdmin } from './purges.ts'
import { rateAdmin } from './rates.ts'
import { receiptAdmin, receivedRequestAdmin } from './receipts.ts'
import type { Secrets } from './secrets.ts'
import { sourceTestAdmin } from './source-test.ts'
import { sourceAdmin } from './sources.ts'
import { sqlAccessAdmin } from './sql-access.ts'
import { tenantAdmin } from './tenants.ts'
import { sessionAdmin, userAdmin } from './users.ts'

/** All operator actions, shared by the command line and the admin API. The audit log records every change under the actor's name. */
export function openAdmin({
  pool,
  log,
  secrets,
  allowPrivateDestinations = false,
  mail = null,
  consoleUrl = null,
  logRetentionMs = null,
  oidcIssuer = null,
}: {
  pool: pg.Pool
  log: Log
  secrets: Secrets
  allowPrivateDestinations?: boolean
  /** Null: e-mail is not configured. */
  mail?: MailSettings | null
  /** For links in messages to people. */
  consoleUrl?: string | null
  /** How long the log keeps raw requests. */
  logRetentionMs?: number | null
  /** The identity provider whose sessions are valid. */
  oidcIssuer?: string | null
}) {
  return (actor: Actor) => ({
    tenants: tenantAdmin({ pool, actor }),
    health: healthAdmin({ pool, log, actor }),
    alerts: alertAdmin({ pool, log, actor }),
    digests: digestAdmin({ pool, actor, mail }),
    policies: policyAdmin({ pool, actor }),
    accounts: accountAdmin({ pool, actor }),
    books: bookAdmin({ pool, actor }),
    rates: rateAdmin({ pool, actor }),
    keys: keyAdmin({ pool, actor }),
    users: userAdmin({ pool, actor }),
    sessions: sessionAdmin({ pool, actor, issuer: oidcIssuer }),
    sources: sourceAdmin({ pool, secrets, actor }),
    sourceTests: sourceTestAdmin({ pool, log, actor }),
    destinations: destinationAdmin({
      ...{ pool, secrets, actor, mail, consoleUrl },
      allowPrivate: allowPrivateDestinations,
    }),
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

export type AdminFor = ReturnType<typeof openAdmin>
export type Admin = ReturnType<AdminFor>
