import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import type pg from 'pg'
import { findHome } from '../../embedded-postgres/home.ts'
import { type Backup, openBackup, type Restored, rejectNewer, restore } from '../admin/backup.ts'
import { AdminError } from '../admin/error.ts'
import { findSecretKeys, listUndecryptableSecrets, openSecrets, storeSecretKeys } from '../admin/secrets.ts'
import { type Config, readConfig } from '../config/config.ts'
import { examples } from './options.ts'
import { type Output, reportProgress } from './output.ts'
import { dataOption, withBareDatabase } from './session.ts'
import { onStop, Stopped } from './stop.ts'

const NOTES = `
Prints the same object as \`kontor backup\`, and "waiting": the number of accepted entries that Kontor processes when it starts.
The restore is one transaction. If it fails or is killed, the database remains empty and you can repeat it.
A backup of an older version is migrated. A backup of a newer version is rejected.
If the backup does not contain the secret key, copy secret.key to the data directory, or set KONTOR_SECRET_KEY, before you start the
server. Without the key, Kontor answers requests to sources that require a signature with 503, and sends nothing to webhook destinations.`

export function addRestore(program: Command, out: Output): void {
  program
    .command('restore')
    .description('Restore a backup into an empty data directory or database.')
    .requiredOption('--from <file>', 'backup file to restore')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor restore --from /backup/kontor-2026-01-31.backup --data /srv/kontor',
        'DATABASE_URL=postgres://kontor:PASSWORD@db.internal/kontor kontor restore --from kontor.backup',
      ),
    )
    .action(async ({ from, ...options }) => {
      const backup = await openBackup(resolve(from))
      let endStop = () => {}
      try {
        rejectNewer(backup)
        await rejectForeignDirectory(options)
        await withBareDatabase(options, out, async ({ pool, log, config }) => {
          const { leftOut, disabled, ...restored } = await restore({
            ...{ pool, log },
            backup,
            progress: reportProgress(out, 'Read'),
            // The rest takes seconds, and stores the secret key.
            beforeCommit() {
              endStop = onStop(() => out.say('The data is restored. The command is about to end.'))
            },
          })
          for (const name of leftOut) out.say(`Skipped table ${JSON.stringify(name)}: it does not belong to Kontor.`)
          reportDisabled(disabled, out)
          await restoreSecrets({ backup, pool, config, out })
          out.json(restored)
        })
      } catch (error) {
        if (!(error instanceof Stopped)) throw error
        throw new Stopped('The restore was stopped. Nothing was changed, and you can run the same command again.')
      } finally {
        endStop()
        await backup.close()
      }
    })
}

/** The original server may still be running, so the copy must not send everything a second time. */
function reportDisabled({ destinations, archive }: Restored['disabled'], out: Output): void {
  if (archive)
    out.say(
      'The archive is disabled. To enable it, set a different KONTOR_ARCHIVE_URL and run `kontor archive enable`.',
    )
  if (destinations > 0)
    out.say(
      `${destinations === 1 ? 'One destination is' : `${destinations} destinations are`} disabled, because the original server may still send the same messages. To send from this copy, run \`kontor destination enable ID\`.`,
    )
}

// Allowed in a directory without a database: the secret key, leftovers of a killed restore, and files that a volume contains.
const ALLOWED_FILES = /^(secret\.key|usage|postgres\.partial-.*|lost\+found)$/

/** `restore` checks that a database is empty. Without a database, the directory must be empty. */
async function rejectForeignDirectory(options: { data?: string | undefined }): Promise<void> {
  const { databaseUrl, dataDir } = readConfig(undefined, { dataDir: options.data })
  if (databaseUrl !== null || (await findHome(dataDir)) !== null) return
  const found = (await readdir(dataDir).catch(() => [])).find(name => !ALLOWED_FILES.test(name))
  if (found === undefined) return
  throw new AdminError(
    'conflict',
    'directory_not_empty',
    `${dataDir} is not empty: it contains ${JSON.stringify(found)}. A backup can only be restored into an empty data directory. ` +
      'Choose another one with --data. Nothing was changed.',
  )
}

/** Stores the secret key where the server finds it. If it is missing, the operator must know before the first webhook arrives. */
async function restoreSecrets({
  backup,
  pool,
  config,
  out,
}: {
  backup: Backup
  pool: pg.Pool
  config: Config
  out: Output
}): Promise<void> {
  const included = backup.header.secret_keys?.map(key => Buffer.from(key, 'hex')) ?? []
  const { dataDir, secretKeys } = config
  const isEmbedded = config.databaseUrl === null
  if (included.length > 0 && isEmbedded && secretKeys === null) await storeSecretKeys(dataDir, included)
  const keys = await findSecretKeys({ secretKeys, dataDir, isEmbedded })
  const { length: unopened } = await listUndecryptableSecrets(pool, openSecrets(keys))
  if (unopened === 0) return
  if (included.length > 0 && !isEmbedded) {
    const value = included.map(key => key.toString('hex')).join(',')
    out.say(`The signing secrets need the secret key of the backup. Set KONTOR_SECRET_KEY=${value}`)
    return
  }
  out.say(
    `${unopened === 1 ? 'One signing secret' : `${unopened} signing secrets`} cannot be decrypted with the current secret key. ` +
      `Before you start the server, ${isEmbedded ? `copy the old secret.key to ${dataDir}, or ` : ''}` +
      'set KONTOR_SECRET_KEY to the old key. Without this key, Kontor answers requests to the affected sources with 503, ' +
      'and sends nothing to the affected destinations.',
  )
}
