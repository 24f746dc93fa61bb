import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import type pg from 'pg'
import { findHome } from '../../embedded-postgres/home.ts'
import { type Backup, openBackup } from '../admin/backup/contents.ts'
import { type Restored, refuseNewer, restore } from '../admin/backup/restore.ts'
import { AdminError } from '../admin/error.ts'
import { findMasterKeys, keepMasterKeys, openSecrets, unopenedSecrets } from '../admin/secrets.ts'
import { type Config, readConfig } from '../config/config.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { progressOn } from './progress.ts'
import { dataOption, withBareDatabase } from './session.ts'

const NOTES = `
Prints what \`kontor backup\` printed, and "waiting": entries that were accepted but not yet processed, which the next start
processes. It happens in one transaction: one that fails or is killed leaves the database empty, and can be repeated.
A backup of an older version is brought to this one; one of a newer version is refused.`

export function addRestore(program: Command, out: Output): void {
  program
    .command('restore')
    .description('Bring back a backup, into an empty data directory or database.')
    .requiredOption('--from <file>', 'the file that `kontor backup` wrote')
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
      try {
        refuseNewer(backup)
        await refuseForeignDirectory(options)
        await withBareDatabase(options, out, async ({ pool, log, config }) => {
          const { leftOut, disabled, ...restored } = await restore({
            ...{ pool, log },
            backup,
            progress: progressOn(out, 'Read'),
          })
          for (const name of leftOut)
            out.say(`Left out: ${JSON.stringify(name)}, a table that is not Kontor's.`)
          sayDisabled(disabled, out)
          await bringSecrets({ backup, pool, config, out })
          out.json(restored)
        })
      } finally {
        await backup.close()
      }
    })
}

/** The original may still be running: nobody is to be told everything twice. */
function sayDisabled({ destinations, archive }: Restored['disabled'], out: Output): void {
  if (archive)
    out.say(
      'The archive is disabled: set another KONTOR_ARCHIVE_URL and run `kontor archive enable` to write one.',
    )
  if (destinations > 0)
    out.say(
      `${destinations === 1 ? 'One destination is' : `${destinations} destinations are`} disabled: \`kontor destination enable ID\` lets this copy send.`,
    )
}

// What may lie in a directory without a database: the master key, what a restore that was killed has left, what a volume of its own has.
const NOBODYS = /^(secret\.key|usage|postgres\.partial-.*|lost\+found)$/

/** Whether a database is empty is asked of the database; without one, the directory must be. */
async function refuseForeignDirectory(options: { data?: string | undefined }): Promise<void> {
  const { databaseUrl, dataDir } = readConfig(undefined, { dataDir: options.data })
  if (databaseUrl !== null || (await findHome(dataDir)) !== null) return
  const found = (await readdir(dataDir).catch(() => [])).find(name => !NOBODYS.test(name))
  if (found === undefined) return
  throw new AdminError(
    'conflict',
    'directory_not_empty',
    `${dataDir} is not empty: it has ${JSON.stringify(found)}. A backup is restored into an empty data directory only: ` +
      'give another one with --data. Nothing was changed.',
  )
}

/** The master key goes where the server finds it. Where it is missing, people must know before the first webhook comes. */
async function bringSecrets({
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
  if (included.length > 0 && isEmbedded && secretKeys === null) await keepMasterKeys(dataDir, included)
  const keys = await findMasterKeys({ secretKeys, dataDir, isEmbedded })
  const { length: unopened } = await unopenedSecrets(pool, openSecrets(keys))
  if (unopened === 0) return
  if (included.length > 0 && !isEmbedded) {
    const value = included.map(key => key.toString('hex')).join(',')
    out.say(`Signing secrets open with the master key of the backup: set KONTOR_SECRET_KEY=${value}`)
    return
  }
  out.say(
    `${unopened === 1 ? 'One signing secret does' : `${unopened} signing secrets do`} not open with the master key here: ` +
      `before the server starts, ${isEmbedded ? `put the old secret.key into ${dataDir}, or ` : ''}` +
      'set KONTOR_SECRET_KEY to the old one. Without it their sources answer 503, and destinations are sent nothing.',
  )
}
