import { resolve } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { backUp, verifyBackup } from '../admin/backup.ts'
import { AdminError } from '../admin/error.ts'
import { version } from '../config/version.ts'
import type { Log } from '../log/log.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import { type Output, reportProgress } from './output.ts'
import { outputPath } from './output-file.ts'
import { dataOption, readSecretKeys, requireData, withBareDatabase } from './session.ts'

const NOTES = `
Prints {"file", "bytes", "tenants", "records", "events", "taken_at", "version"}. A running server is not affected.
An existing file is replaced when the new backup is complete.
The backup does not contain the secret key that encrypts signing secrets (secret.key, KONTOR_SECRET_KEY). Store that key
separately, or use --include-secret-key and protect the file like a password.
With NATS_URL, entries in JetStream are processed first, so that the backup contains them.`

export function addBackup(program: Command, out: Output): void {
  const backup = program
    .command('backup')
    .description('Write a consistent backup of all data to one file, or verify a backup.')
    .usage('--to <file> [options]')
    .option('--to <file>', 'backup file to write (required)')
    .option('--include-secret-key', 'include the secret key in the backup')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor backup --to /backup/kontor-2026-01-31.backup',
        'kontor backup verify /backup/kontor-2026-01-31.backup',
        'kontor restore --from /backup/kontor-2026-01-31.backup --data /srv/kontor',
      ),
    )
    .action(async ({ to, includeSecretKey, ...options }) => {
      if (to === undefined) throw new UsageError('The option --to <file> is required.')
      const path = await outputPath('--to', to)
      await requireData(options)
      await withBareDatabase(options, out, async ({ pool, config, log }) => {
        const secretKeys = includeSecretKey ? await readSecretKeys(config) : null
        if (includeSecretKey && !secretKeys?.length)
          throw new UsageError('--include-secret-key: there is no secret key, because KONTOR_SECRET_KEY is not set.')
        await drain(log, out)
        out.json(await backUp({ pool, path, version, secretKeys, progress: reportProgress(out, 'Copied') }))
      })
    })
  backup
    .command('verify')
    .description('Check that a backup is complete and undamaged, and print a summary.')
    .argument('<file>', 'backup file to check')
    .addHelpText('after', '\nPrints the same object as `kontor backup`. Needs no database.')
    .addHelpText('after', examples('kontor backup verify /backup/kontor-2026-01-31.backup'))
    .action(async file => out.json(await verifyBackup(resolve(file), reportProgress(out, 'Checked'))))
}

// Workers read tens of thousands of entries per second. If entries are unread after this time, no worker is running.
const DRAIN_MS = 60_000

/** Entries in JetStream are not in PostgreSQL, so the backup waits until the workers have read them. */
async function drain(log: Log, out: Output): Promise<void> {
  if (log.outside === null) return
  out.say('Waiting until the entries in JetStream are processed.')
  const unread = await log.outside.untilRead(DRAIN_MS)
  if (unread > 0)
    throw new AdminError(
      'conflict',
      'stream_not_drained',
      `JetStream holds ${unread} unprocessed entries, which the backup would not contain. Start a worker (kontor start --surfaces worker) and retry.`,
    )
}
