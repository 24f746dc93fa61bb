import { statfs } from 'node:fs/promises'
import type { Command } from '@commander-js/extra-typings'
import type pg from 'pg'
import { findHome } from '../../embedded-postgres/home.ts'
import { type Disk, databaseMissing, diagnose, type Finding } from '../admin/doctor.ts'
import { findSecretKeys, openSecrets } from '../admin/secrets.ts'
import type { Config } from '../config/config.ts'
import { countDeadLetters } from '../store/entries/dead-letters.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { emptyDataDir, requireLocal } from './remote.ts'
import { dataOption, withBareDatabase } from './session.ts'

const NOTES = `
This command changes nothing. Exit code 0 if there are no findings, 1 otherwise.
With --json: {"ok", "findings": [{"code", "what", "means", "help"}]}: the problem, its effect, and a command or step that helps. Codes
are stable across versions. The command also prints the number of open dead letters on stderr. They are a finding only if an entry
failed, or more than 100 items were rejected, in the last 24 hours.`

export function addDoctor(program: Command, out: Output): void {
  program
    .command('doctor')
    .description('Diagnose problems, explain them, and suggest a command that helps.')
    .option('--json', 'print a JSON object instead of text')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor doctor', 'kontor doctor --json | jq -r .findings[].code'))
    .action(async ({ json, ...options }) => {
      const report = (findings: readonly Finding[]) => {
        if (json) out.json({ ok: findings.length === 0, findings })
        else out.print(`${formatFindings(findings)}\n`)
        out.exitCode = findings.length === 0 ? 0 : 1
      }
      await requireLocal(options)
      const empty = await emptyDataDir(options)
      if (empty !== null) return report([databaseMissing(empty)])
      await withBareDatabase(options, out, async ({ pool, config, log }) => {
        const { secretKeys, dataDir, databaseUrl, processedRetentionMs, minFreeDisk, maxBacklog } = config
        const keys = await findSecretKeys({ secretKeys, dataDir, isEmbedded: databaseUrl === null })
        const findings = await diagnose({
          ...{ pool, log, secrets: openSecrets(keys), hasSecretKey: keys !== null, processedRetentionMs },
          ...{ minFreeDisk, maxBacklog },
          dataDir: databaseUrl === null ? dataDir : null,
          now: () => new Date(),
          disk: () => readDisk(config),
        })
        report(findings)
        await mentionDeadLetters(pool, out)
      })
    })
}

/** Invalid items of senders are usual, so they are a note and do not change the exit code. */
async function mentionDeadLetters(pool: pg.Pool, out: Output): Promise<void> {
  // The database may be unavailable, or have another schema: then that is the finding.
  const count = await countDeadLetters(pool).catch(() => 0)
  if (count > 0)
    out.say(
      `Open dead letters: ${count.toLocaleString('en')}. Open dead letters alone are not a finding. To list them, run \`kontor dead-letters list\`.`,
    )
}

/** Null for an external database: its disk is not visible from here. */
async function readDisk({ databaseUrl, dataDir }: Config): Promise<Disk | null> {
  const home = databaseUrl === null ? await findHome(dataDir) : null
  if (home === null) return null
  const path = home.home.directory
  const { bavail, blocks, bsize } = await statfs(path)
  return { path, freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

function formatFindings(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'No problems found.'
  return findings.map(({ code, what, means, help }) => `${code}\n  ${what}\n  ${means}\n  → ${help}`).join('\n\n')
}
