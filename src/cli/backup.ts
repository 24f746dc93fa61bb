import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { backUp } from '../admin/backup/backup.ts'
import { verifyBackup } from '../admin/backup/contents.ts'
import { AdminError } from '../admin/error.ts'
import { version } from '../config/version.ts'
import type { Log } from '../log/log.ts'
import { UsageError } from './errors.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { progressOn } from './progress.ts'
import { dataOption, masterKeysOf, requireData, withBareDatabase } from './session.ts'

const NOTES = `
Prints {"file", "bytes", "tenants", "records", "events", "taken_at", "version"}. It runs beside a server and holds it up in
nothing. A file of that name is replaced once the new one is whole.
The file holds everything but the master key, which signing secrets are encrypted under (secret.key, KONTOR_SECRET_KEY):
keep that elsewhere, or give --include-secret-key and keep the file like a password.
With NATS_URL, what JetStream holds at the beginning is processed first, so that it is in the file.`

export function addBackup(program: Command, out: Output): void {
  const backup = program
    .command('backup')
    .description('Write everything, as of one moment, into one file; or check such a file.')
    .option('--to <file>', 'the file to write')
    .option('--include-secret-key', 'put the master key into the file as well')
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
      if (to === undefined) throw new UsageError('Give the file to write: --to FILE.')
      const path = await writablePath(to)
      await requireData(options)
      await withBareDatabase(options, out, async ({ pool, config, log }) => {
        const secretKeys = includeSecretKey ? await masterKeysOf(config) : null
        if (includeSecretKey && !secretKeys?.length)
          throw new UsageError('There is no master key to include: KONTOR_SECRET_KEY is not set.')
        await drain(log, out)
        out.json(await backUp({ pool, path, version, secretKeys, progress: progressOn(out, 'Copied') }))
      })
    })
  backup
    .command('verify')
    .description('Read a backup from end to end and compare it with what was written; tell what is in it.')
    .argument('<file>')
    .addHelpText('after', '\nPrints what `kontor backup` printed. It needs no database.')
    .addHelpText('after', examples('kontor backup verify /backup/kontor-2026-01-31.backup'))
    .action(async file => out.json(await verifyBackup(resolve(file), progressOn(out, 'Checked'))))
}

// Workers take tens of thousands a second: whoever has not read it by then is not running.
const DRAIN_MS = 60_000

/** What NATS holds is not in PostgreSQL: what was accepted up to here is processed first. */
async function drain(log: Log, out: Output): Promise<void> {
  if (log.outside === null) return
  out.say('What JetStream holds is processed first.')
  const unread = await log.outside.untilRead(DRAIN_MS)
  if (unread > 0)
    throw new AdminError(
      'conflict',
      'stream_not_drained',
      `JetStream holds ${unread} entries that are not processed, and they would not be in the backup. Start a worker (kontor start --surfaces worker), and try again.`,
    )
}

async function writablePath(to: string): Promise<string> {
  const path = resolve(to)
  const found = await stat(path).catch(() => null)
  if (found && !found.isFile()) throw new UsageError(`${path} is not a file. Give the name of one.`)
  return path
}
