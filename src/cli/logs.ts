import type { Command } from '@commander-js/extra-typings'
import { requireTenant } from '../admin/actor.ts'
import { AdminError } from '../admin/error.ts'
import { isUuid } from '../domain/ids.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { type EventOutcome, eventOutcome, outcomeOfSent, outcomeText } from '../reports/event-outcome.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { currentUser, dataOption, withReadDatabase } from './session.ts'

const NOTES = `
Prints the response of GET /v1/events/:id, and the processing steps on stderr. Exit code 1 if the event is not found.`

export function addLogs(program: Command, out: Output): void {
  program
    .command('logs')
    .description('Show how an event was processed.')
    .argument('<id>', 'id of the event: assigned by Kontor, or by its sender')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .option('--source <id>', 'source that received the event (src_…), if several senders use the same id')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor logs 0197f6d2-7c1e-7000-8a51-9b1f3a2c4d5e --tenant acme',
        'kontor logs evt_1PqX --tenant acme --source src_4fTzQ9aXw2LmN8pB',
      ),
    )
    .action((id, options) =>
      withReadDatabase(options, out, async ({ pool, log }) => {
        const tenant = await requireTenant(pool, currentUser(), options.tenant)
        const own = isUuid(id) ? await eventOutcome({ pool, log }, tenant.id, id.toLowerCase()) : null
        const query = { sentId: id, sourceId: options.source }
        const outcome = own ?? (await outcomeOfSent({ pool, log }, tenant.id, query))
        if (!outcome) throw new AdminError('not_found', 'unknown_event', `No such event: ${quote(id)}.`)
        for (const line of traceLines(outcome)) out.say(line)
        out.json(JSON.parse(outcomeText(outcome)))
      }),
    )
}

function traceLines({ status, reason, receivedAt, event, letter, waiting, duplicateOf }: EventOutcome): string[] {
  const way = [`✓ received   ${receivedAt.toISOString()}`]
  if (event) way.push(`✓ normalized ${event.eventType}, ${event.source}, occurred ${event.occurredAt.toISOString()}`)
  if (status === 'stored') {
    way.push(`✓ applied    ${event?.conversion ? 'as a conversion' : 'as an event'}`)
    if (reason !== null) way.push(`! note       ${reason}`)
  } else if (status === 'duplicate') way.push(`✗ duplicate  of ${duplicateOf}`)
  else if (status === 'queued' || status === 'deferred')
    way.push(`… ${status.padEnd(10)} ${reason ?? 'waiting to be applied'}`)
  else way.push(`✗ ${status.padEnd(10)} ${reason ?? ''}`)
  if (waiting?.nextAttemptAt) way.push(`… retry at   ${waiting.nextAttemptAt.toISOString()}`)
  if (letter?.replayedAs) way.push(`✓ replayed   as ${letter.replayedAs}`)
  return way
}
