import { Argument, type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { requireTenant } from '../admin/actor.ts'
import type { DeadLetterView } from '../admin/dead-letters.ts'
import type { RejectionView } from '../admin/receipts.ts'
import { followNewest } from '../reports/newest.ts'
import { type ConversionRow, listConversions } from '../store/conversions/conversions.ts'
import { type EventRow, listEvents } from '../store/events/events.ts'
import { conversionText, eventText, plainNumber } from '../store/export/row-texts.ts'
import { examples } from './options.ts'
import { formatLine, type Output } from './output.ts'
import { currentUser, dataOption, type Session, withReadDatabase } from './session.ts'
import { untilReaderStops } from './stop.ts'

const NOTES = `
Prints one line per item on a terminal, and one JSON object per line in a pipe, with the fields of the API. Press Ctrl-C to stop.
Reads the newest items every second. Items that are older (occurred_at) than items already shown may not appear; GET /v1/events
lists them.`

const KINDS = ['events', 'conversions', 'refused'] as const
type Kind = (typeof KINDS)[number]

const NEWEST = 100
const MAX_LAST = 1_000

export function addTail(program: Command, out: Output): void {
  program
    .command('tail')
    .description('Follow new events, conversions or rejected requests.')
    .addArgument(
      new Argument('[what]', 'what to follow; refused: rejected requests and dead letters')
        .choices(KINDS)
        .default('events' as const),
    )
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .option('--last <n>', 'number of existing items to show first', parseCount, 10)
    .option('--event-type <type>', 'only events of this type')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor tail --tenant acme',
        'kontor tail conversions --tenant acme | jq .amount',
        'kontor tail refused --tenant acme --last 50',
      ),
    )
    .action((what, options) =>
      withReadDatabase(options, out, async session => {
        const source = await createReader(session, what, options)
        const print = (lines: Line[]) => {
          for (const { text, json } of lines) out.print(`${process.stdout.isTTY ? text : json}\n`)
        }
        const newest = () => source(Math.max(NEWEST, options.last))
        let isFirst = true
        await untilReaderStops(async signal => {
          for await (const lines of followNewest({ newest, signal })) {
            print(isFirst ? lines.slice(lines.length - Math.min(options.last, lines.length)) : lines)
            isFirst = false
          }
        })
      }),
    )
}

type Line = { id: string; text: string; json: string }

async function createReader(
  { pool, admin }: Session,
  what: Kind,
  { tenant, eventType = null }: { tenant: string; eventType?: string | null },
): Promise<(limit: number) => Promise<Line[]>> {
  if (what === 'refused')
    return async limit => {
      const lines = [
        ...(await admin.deadLetters.list({ tenant, limit })).map(letterLine),
        ...(await admin.receipts.rejections({ tenant, limit })).map(rejectionLine),
      ]
      return lines.sort((a, b) => b.at.localeCompare(a.at)).slice(0, limit)
    }
  const tenantId = (await requireTenant(pool, currentUser(), tenant)).id
  const page = (limit: number) => ({ limit, offset: 0, since: null, until: null, after: null, eventType })
  if (what === 'conversions')
    return async limit => (await listConversions(pool, tenantId, page(limit))).map(conversionLine)
  return async limit => (await listEvents(pool, tenantId, page(limit))).rows.map(eventLine)
}

function eventLine(row: EventRow): Line {
  const parts = [row.source, row.contactId ?? row.visitor, row.id]
  return { id: row.id, text: formatLine(row.occurredAt, 'cyan', row.eventType, parts), json: eventText(row) }
}

function conversionLine(row: ConversionRow): Line {
  const amount = row.amount === null ? null : `${plainNumber(row.amount)} ${row.currency ?? ''}`
  const parts = [amount, row.source, row.contactId ?? row.visitor, row.id]
  const text = formatLine(row.occurredAt, 'green', row.conversionType, parts)
  return { id: row.id, text, json: conversionText(row) }
}

function letterLine(letter: DeadLetterView): Line & { at: string } {
  const parts = [letter.error, letter.id]
  const text = formatLine(new Date(letter.failed_at), 'red', letter.reason, parts)
  return { id: letter.id, at: letter.failed_at, text, json: JSON.stringify(letter) }
}

function rejectionLine(rejection: RejectionView): Line & { at: string } {
  const { id, rejected_at: at, status, code, detail, route, source_config_id: source, key_id: key } = rejection
  const text = formatLine(new Date(at), 'red', `${status} ${code}`, [route ?? source, detail, key])
  return { id: `refused ${id}`, at, text, json: JSON.stringify(rejection) }
}

function parseCount(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count <= MAX_LAST) return count
  throw new InvalidArgumentError(`Expected a number from 0 to ${MAX_LAST}.`)
}
