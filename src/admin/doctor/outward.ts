import { publicTenantId } from '../../domain/tenants/tenants.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { archiveProgress, archiveState } from '../../store/archive/archive.ts'
import { listFailing } from '../../store/destinations/destinations.ts'
import { ago, type Check, type Finding, kontor } from './finding.ts'

/** What Kontor sends and does not get rid of. */
export const outward: Check = async installation => {
  const { pool, databaseNow } = installation
  const failing = await listFailing(pool, new Date(databaseNow.getTime() - HOUR_MS))
  const { enabled } = await archiveState(pool)
  const { error, failedAt } = await archiveProgress(pool)
  return [
    ...failing.map(({ id, name, tenantId, failingSince, lastError, disabledReason }): Finding => {
      const which = `Destination ${id} (${name}, tenant ${publicTenantId(tenantId)})`
      return disabledReason !== null
        ? {
            code: 'destination_disabled',
            what: `${which} is disabled: ${disabledReason}`,
            means:
              'It is sent nothing. What was still to be sent waits; what comes meanwhile comes by replay.',
            help: `${kontor(installation, `destination test ${id}`)}, then destination enable ${id}; or destination delete ${id}`,
          }
        : {
            code: 'destination_failing',
            what: `${which} has taken nothing for ${ago(failingSince!, databaseNow)}: ${lastError}.`,
            means: 'What is to be sent to it waits and is tried again. After five days it is disabled.',
            help: kontor(installation, `destination deliveries ${id} --outcome retrying`),
          }
    }),
    enabled && error !== null
      ? {
          code: 'archive_failing',
          what: `Files of the archive cannot be written since ${ago(failedAt!, databaseNow)}: ${error}`,
          means: 'What is to be archived waits in the database, which grows.',
          help: `See that KONTOR_ARCHIVE_URL can be reached and written; ${kontor(installation, 'archive status')}`,
        }
      : null,
  ]
}
