import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import type { Admin } from '../admin/admin.ts'
import type { DeadLetterView } from '../admin/dead-letters.ts'
import { DEAD_LETTER_REASONS } from '../domain/entries/entry.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printRead, tenantFilter, withAppendingAdmin, withReadAdmin } from './session.ts'

const PAGE = 100
const WAIT_MS = 5_000
const sourceOption = () => new Option('--source <id>', 'only dead letters of this source (src_…)')
const reasonOption = () =>
  new Option('--reason <reason>', 'rejected (invalid data) or failed (an error while processing)').choices(
    DEAD_LETTER_REASONS,
  )

export function addDeadLetters(program: Command, out: Output): void {
  const letters = program
    .command('dead-letters')
    .description('List, show or replay dead letters: data that was invalid or could not be processed.')
  letters.addHelpText('after', examples('kontor dead-letters list', 'kontor dead-letters replay --all'))
  letters
    .command('list')
    .description('List dead letters, newest first.')
    .addOption(tenantFilter())
    .addOption(sourceOption())
    .addOption(reasonOption())
    .option('--id <id>', 'only the dead letter with this id')
    .option('--limit <n>', 'maximum number of dead letters (default: no limit)', parseLimit)
    .addOption(new Option('--all', 'list all dead letters (the default)').hideHelp())
    .addOption(dataOption())
    .addHelpText(
      'after',
      examples('kontor dead-letters list', 'kontor dead-letters list --source src_4fTzQ9aXw2LmN8pB --limit 20'),
    )
    .action(options =>
      withReadAdmin(options, out, async ({ admin }) => {
        if (options.id === undefined) return out.json(await listLetters(admin, options))
        const { body: _, ...letter } = await admin.deadLetters.show(options.id, options.tenant)
        out.json([letter])
      }),
    )
  letters
    .command('show')
    .description('Show a dead letter with the body as received.')
    .argument('<id>', 'id of the dead letter')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor dead-letters show 019c1234-5678-7000-8abc-def012300003'))
    .action((id, options) => printRead(options, out, admin => admin.deadLetters.show(id)))
  letters
    .command('replay')
    .description('Process dead letters again. Select them with one of the options.')
    .option('--id <id>', 'replay the dead letter with this id')
    .option('--all', 'replay all dead letters (with --tenant: all of that tenant)')
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
        throw new UsageError('Select dead letters with --id, --source, --reason, --tenant or --all.')
      await withAppendingAdmin(options, out, async ({ admin }) => {
        const progress = (replayed: number) => out.say(`${replayed} replayed …`)
        const order = { tenant, id, source, reason, all: true }
        out.json(await admin.deadLetters.replay(order, { progress, waitMs: WAIT_MS }))
      })
    })
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

function parseLimit(text: string): number {
  const limit = Number(text)
  if (limit >= 1) return limit
  throw new InvalidArgumentError('Expected a number of at least 1, for example 20.')
}

const REPLAY_NOTES = `
Queues the dead letters for the running server, waits up to 5 seconds, and prints
{"replayed", "applied", "failed_again", "waiting", "remaining"}. An event that was processed in the meantime is not applied again.
Events are processed with the current settings of their source.`
