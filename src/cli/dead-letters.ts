import { DEAD_LETTER_REASONS, type DeadLetterView } from '../admin/dead-letters.ts'
import { initialisePostgresLog } from '../log/postgres/initialise.ts'
import { ensurePartitions } from '../postgres/partitions.ts'
import { defineCommand, UsageError } from './command.ts'
import { databaseFlags, type Session, withDatabase } from './session.ts'

const chosen = {
  tenant: { value: 'T', meaning: 'only those of this tenant: its id or its name' },
  source: { value: 'ID', meaning: 'only those of this source (src_…)' },
  reason: {
    value: DEAD_LETTER_REASONS.join('|'),
    meaning: 'rejected: never valid; failed: could not be applied',
  },
} as const
const PAGE = 100

const list = defineCommand({
  name: 'dead-letters list',
  summary: 'List what could not be processed, newest first.',
  flags: {
    ...chosen,
    id: { value: 'ID', meaning: 'only this one' },
    limit: { value: 'N', meaning: 'at most so many (default: all of them)' },
    all: { meaning: 'all of them, which is the default' },
    ...databaseFlags,
  },
  examples: ['kontor dead-letters list', 'kontor dead-letters list --source src_4fTzQ9aXw2LmN8pB --limit 20'],
  run: ({ flags, out }) => {
    const limit = flags.limit === undefined ? Number.POSITIVE_INFINITY : Number(flags.limit)
    if (!(limit >= 1)) throw new UsageError('--limit must be a number from 1 on, for example 20.')
    checkReason(flags.reason)
    return withDatabase(flags, out, async ({ admin }) => {
      if (flags.id !== undefined) {
        const { body: _, ...letter } = await admin.deadLetters.show(flags.id, flags.tenant)
        out.json([letter])
        return 0
      }
      const letters: DeadLetterView[] = []
      for (;;) {
        const last = letters.at(-1)
        const before = last && { failedAt: new Date(last.failed_at), id: last.id }
        const wanted = Math.min(PAGE, limit - letters.length)
        const page = wanted > 0 ? await admin.deadLetters.list({ ...flags, limit: wanted, before }) : []
        letters.push(...page)
        if (page.length < PAGE) break
      }
      out.json(letters)
      return 0
    })
  },
})

const show = defineCommand({
  name: 'dead-letters show',
  summary: 'Show one of them, with the body as it came in.',
  arguments: { ID: 'the id of the dead letter' },
  flags: databaseFlags,
  examples: ['kontor dead-letters show 019c1234-5678-7000-8abc-def012300003'],
  run: ({ args, flags, out }) =>
    withDatabase(flags, out, async ({ admin }) => {
      out.json(await admin.deadLetters.show(args.ID))
      return 0
    }),
})

const replay = defineCommand({
  name: 'dead-letters replay',
  summary: 'Process them again: one, those of a source or a reason, or all.',
  flags: {
    id: { value: 'ID', meaning: 'this one' },
    all: { meaning: 'all of them (of the tenant, if one is given)' },
    ...chosen,
    ...databaseFlags,
  },
  notes: [
    'Prints {"replayed", "remaining"}. Each is put back into the log once, and a running server processes it; a repeat of\n' +
      'what has been processed meanwhile changes nothing. Events are read with the source settings of today.',
  ],
  examples: [
    'kontor dead-letters replay --id 019c1234-5678-7000-8abc-def012300003',
    'kontor dead-letters replay --source src_4fTzQ9aXw2LmN8pB --reason failed',
    'kontor dead-letters replay --tenant acme --all',
  ],
  run: ({ flags, out }) => {
    const { tenant, id, source, reason, all } = flags
    checkReason(reason)
    if ([id, source, reason, tenant].every(given => given === undefined) && !all)
      throw new UsageError('Say which: --id ID, --source ID, --reason R, --tenant T or --all.')
    return withDatabase(flags, out, async session => {
      await readyLog(session)
      const progress = (replayed: number) => out.say(`${replayed} replayed …`)
      out.json(
        await session.admin.deadLetters.replay({ tenant, id, source, reason, all: true }, { progress }),
      )
      return 0
    })
  },
})

export const deadLetterCommands = [list, show, replay]

function checkReason(reason: string | undefined): void {
  if (reason !== undefined && !DEAD_LETTER_REASONS.includes(reason as never))
    throw new UsageError(`--reason must be one of ${DEAD_LETTER_REASONS.join(', ')}.`)
}

/** For commands that put something into the log, whether a server runs or not. */
export async function readyLog({ pool, config }: Session): Promise<void> {
  await ensurePartitions(pool, new Date())
  await initialisePostgresLog(pool, config.logPartitions)
}
