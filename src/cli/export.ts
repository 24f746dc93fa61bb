import { Argument, type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { parseTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp, TIME_FORMAT } from '../domain/time.ts'
import { endIn, UTC } from '../domain/time-zone.ts'
import { exportBytes, FORMATS } from '../reports/export/export.ts'
import { findTable, TABLES } from '../reports/export/tables.ts'
import { UsageError } from './errors.ts'
import { END_OF_DAY, examples } from './options.ts'
import { type Output, openProgressLine } from './output.ts'
import { outputPath, writeOutputFile } from './output-file.ts'
import { download } from './remote.ts'
import { dataOption, withReadAdmin } from './session.ts'

const PERSON = 'person'

const NOTES = `
Each row has the fields of the API, for example of GET /v1/events. Nested values are JSON strings in CSV and Parquet. Each row
appears exactly once, even if data arrives during the export. --since and --until are inclusive and compare occurred_at (events,
conversions, movements), updatedAt (records) or updated_at (subscriptions). With --out, the command prints
{"file", "rows", "bytes", "seconds"}, and the file appears when it is complete. For a remote server, "rows" is null.
\`kontor export person\` is the same as \`kontor person export --format json\`: one JSON array. The field "type"
of each item says what it is: person, contact, event and so on.`

export function addExport(program: Command, out: Output): void {
  program
    .command('export')
    .description('Export records, events, conversions, subscriptions or movements, or all data about a person.')
    .addArgument(new Argument('<what>', 'what to export').choices([...TABLES, PERSON] as const))
    .addOption(new Option('--tenant <tenant>', 'tenant id or name').makeOptionMandatory())
    .option('--email <address>', 'with person: e-mail address')
    .option('--id <id>', 'with person: profile id (prof_…), user id, contact id or visitor id')
    .option('--since <time>', 'only rows at or after this time, for example 2026-01-31', text => parseMoment(text))
    .option('--until <time>', `only rows until this time; ${END_OF_DAY}`, parseEnd)
    .addOption(new Option('--format <format>', 'output format').choices([...FORMATS]).default('ndjson' as const))
    .option('--out <file>', 'file to write (default: stdout)')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor export events --tenant acme --since 2026-01-01 --format parquet --out events.parquet',
        'kontor export contacts --tenant acme --format csv --out contacts.csv',
        'kontor export person --tenant acme --email ada@example.com --out ada.json',
      ),
    )
    .action(async (what, options, command) => {
      const { since = null, until = null, format, out: file } = options
      if (what === PERSON) {
        if (since || until || command.getOptionValueSource('format') === 'cli')
          throw new UsageError(
            '--since, --until and --format are not valid for kontor export person, which exports all data of the person as JSON.',
          )
        return exportPerson(options, out)
      }
      if (options.email !== undefined || options.id !== undefined)
        throw new UsageError('--email and --id are only valid for kontor export person.')
      if (since && until && since > until) throw new UsageError('--since must not be after --until.')
      if (format === 'parquet' && file === undefined && process.stdout.isTTY)
        throw new UsageError('Parquet is a binary format. Specify a file with --out FILE.')
      const path = file === undefined ? null : await outputPath('--out', file)
      await withReadAdmin(options, out, async ({ admin, pool, remote }) => {
        const tenant = await admin.tenants.show(options.tenant!)
        const startedAt = performance.now()
        const line = openProgressLine('rows')
        // A remote server sends only the file.
        let rows = remote ? null : 0
        const onRows = (count: number) => {
          rows = (rows ?? 0) + count
          line.show(rows, null)
        }
        const window = { since, until }
        const bytes = remote
          ? download(remote, `/tenants/${tenant.id}/export/${what}`, { format, ...given(window) })
          : exportBytes(pool, parseTenantId(tenant.id)!, { table: findTable(what), window, format, onRows })
        const written = path === null ? await writeStdout(bytes) : await writeOutputFile(path, bytes)
        line.end()
        const seconds = Math.round(performance.now() - startedAt) / 1000
        if (path !== null) out.json({ file: path, rows, bytes: written, seconds })
      })
    })
}

type PersonOptions = { tenant?: string; email?: string; id?: string; out?: string; data?: string }

/** Equivalent to kontor person export --format json. */
async function exportPerson({ tenant, email, id, out: file, ...options }: PersonOptions, out: Output) {
  if ((email === undefined) === (id === undefined)) throw new UsageError('Specify either --email or --id.')
  const who = email === undefined ? id! : `email:${email}`
  const path = file === undefined ? null : await outputPath('--out', file)
  await withReadAdmin(options, out, async ({ admin }) => {
    const text = await admin.people.export({ tenant: tenant!, id: who, format: 'json' })
    if (path === null) for await (const part of text) out.print(part)
    else out.json({ file: path, bytes: await writeOutputFile(path, text) })
  })
}

function given<Value>(values: Record<string, Value | null>): Record<string, Value> {
  const present = Object.entries(values).filter((entry): entry is [string, Value] => entry[1] !== null)
  return Object.fromEntries(present)
}

const parseEnd = (text: string) => parseMoment(text, endIn(UTC, text))

function parseMoment(text: string, moment: unknown = parseTimestamp(text)): Date {
  if (!(moment instanceof Date)) throw new InvalidArgumentError(`Expected ${TIME_FORMAT}.`)
  return moment
}

/** Ends early if stdout fails: `kontor export … | head` closes the pipe, and the process reports any other error. */
async function writeStdout(bytes: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const part of bytes) {
    const error = await new Promise<Error | null | undefined>(done => process.stdout.write(part, done))
    if (error) break
  }
}
