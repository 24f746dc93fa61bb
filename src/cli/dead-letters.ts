import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import type { Admin } from '../admin/admin.ts'
import type { DeadLetterView } from '../admin/views/dead-letters.ts'
import { DEAD_LETTER_REASONS } from '../domain/entries/dead-letters.ts'
import { UsageError } from './errors.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { dataOption, readingDatabase, readyLog, tenantFilter, withDatabase } from './session.ts'

const PAGE = 100
const WAIT_MS = 5_000
const sourceOption = () => new Option('--source <id>', 'only those of this source (src_…)')
const reasonOption = () =>
  new Option('--reason <reason>', 'rejected: never valid; failed: could not be applied').choices(
    DEAD_LETTER_REASONS,
  )

export function addDeadLetters(program: Command, out: Output): void {
  const letters = program.command('dead-letters').description('Dead letters: what could not be processed.')
  letters.addHelpText('after', examples('kontor dead-letters list', 'kontor dead-letters replay --all'))
  addList(letters, out)
  addShow(letters, out)
  addReplay(letters, out)
}

function addList(letters: Command, out: Output): void {
  letters
    .command('list')
    .description('List what could not be processed, newest first.')
    .addOption(tenantFilter())
    .addOption(sourceOption())
    .addOption(reasonOption())
    .option('--id <id>', 'only this one')
    .option('--limit <n>', 'at most so many (default: all of them)', limitOf)
    .option('--all', 'all of them, which is the default')
    .addOption(dataOption())
    .addHelpText(
      'after',
      examples(
        'kontor dead-letters list',
        'kontor dead-letters list --source src_4fTzQ9aXw2LmN8pB --limit 20',
      ),
    )
    .action(options =>
      readingDatabase(options, out, async ({ admin }) => {
        if (options.id === undefined) return out.json(await listLetters(admin, options))
        const { body: _, ...letter } = await admin.deadLetters.show(options.id, options.tenant)
        out.json([letter])
      }),
    )
}

type Selection = { tenant?: string; source?: string; reason?: string; limit?: number }

async function listLetters(admin: Admin, { limit = Number.POSITIVE_INFINITY, ...selection }: Selection) {
  const letters: DeadLetterView[] = []
  for (;;) {
    const last = letters.at(-1)
    const before = last && { failedAt: new Date(last.failed_at), id: last.id }
    const wanted = Math.min(PAGE, limit - letters.length)
    const page = wanted > 0 ? await admin.deadLetters.list({ ...selection, limit: wanted, before }) : []
    letters.push(...page)
    if (page.length < PAGE) return letters
  }
}

function limitOf(text: string): number {
  const limit = Number(text)
  if (limit >= 1) return limit
  throw new InvalidArgumentError('It must be a number from 1 on, for example 20.')
}

function addShow(letters: Command, out: Output): void {
  letters
    .command('show')
    .description('Show one of them, with the body as it came in.')
    .argument('<id>', 'the id of the dead letter')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor dead-letters show 019c1234-5678-7000-8abc-def012300003'))
    .action((id, options) =>
      readingDatabase(options, out, async ({ admin }) => out.json(await admin.deadLetters.show(id))),
    )
}

const REPLAY_NOTES = `
Prints {"replayed", "applied", "failed_again", "waiting", "remaining"}, after 5 seconds at the latest. Each is put back into the log once, and a running server processes it; a repeat of
what has been processed meanwhile changes nothing. Events are read with the source settings of today.`

function addReplay(letters: Command, out: Output): void {
  letters
    .command('replay')
    .description('Process them again: one, those of a source or a reason, or all.')
    .option('--id <id>', 'this one')
    .option('--all', 'all of them (of the tenant, if one is given)')
    .addOption(tenantFilter())
    .addOption(sourceOption())
    .addOption(reasonOption())
    .addOption(dataOption())
    .addHelpText('after', REPLAY_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor dead-letters replay --id 019c1234-5678-7000-8abc-def012300003',
        'kontor dead-letters replay --source src_4fTzQ9aXw2LmN8pB --reason failed',
        'kontor dead-letters replay --tenant acme --all',
      ),
    )
    .action(async options => {
      const { tenant, id, source, reason, all } = options
      if ([id, source, reason, tenant].every(given => given === undefined) && !all)
        throw new UsageError('Say which: --id ID, --source ID, --reason R, --tenant T or --all.')
      await withDatabase(options, out, async session => {
        await readyLog(session)
        const progress = (replayed: number) => out.say(`${replayed} replayed …`)
        out.json(
          await session.admin.deadLetters.replay(
            { tenant, id, source, reason, all: true },
            { progress, waitMs: WAIT_MS },
          ),
        )
      })
    })
}
