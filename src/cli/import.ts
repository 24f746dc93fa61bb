import { basename, join } from 'node:path'
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { fileError, fileErrorReason } from '../admin/error.ts'
import type { EntityType } from '../domain/records/records.ts'
import { parseTenantId } from '../domain/tenants/tenants.ts'
import { CLOCKS_APART_MS, DAY_MS, parseTimestamp, TIME_FORMAT } from '../domain/time.ts'
import { type Input, openErrorsFile, openInput, openJournal } from '../import/files.ts'
import { PRESETS, type Preset } from '../import/presets.ts'
import {
  EVENT_FIELDS,
  eventReading,
  listColumns,
  type Mapping,
  parseMapping,
  RECORD_FIELDS,
  recordReading,
} from '../import/readings.ts'
import { csvRows, FileError, isRejection, ndjsonRows, type Reading, type Rejection, type Row } from '../import/rows.ts'
import {
  eventTarget,
  type ImportOptions,
  openSend,
  recordTarget,
  runImport,
  type Send,
  sourceTarget,
  type Target,
  type Totals,
} from '../import/run.ts'
import { stripeFileRows, stripeReading } from '../import/stripe.ts'
import { IMPORTED_LISTS, stripeApiRows } from '../import/stripe-api.ts'
import { findProcessed, processedKey } from '../store/inbound/processed.ts'
import { RETRY_HINT, UsageError } from './errors.ts'
import { examples, readTextOption } from './options.ts'
import { type Output, openProgressLine } from './output.ts'
import { createErrorsFile } from './output-file.ts'
import { reachServer, waitUntilApplied } from './running-server.ts'
import { dataOption, type Session, tenantOption, urlOption, withDatabase } from './session.ts'
import { withStopSignal } from './stop.ts'
import {
  chooseNamespace,
  keyFileOption,
  keyOption,
  namespaceOption,
  openStripeFile,
  readStripeKey,
  sourceOption,
} from './stripe.ts'

const IMPORT_NOTES = `
Sends the rows through the public APIs of the running server. If no server is running, the command starts one and stops it at the
end. It creates the Kontor API key that it needs, and revokes it at the end.
Importing the same file again adds nothing. After an interruption, run the same command again to continue.

Prints {"read", "accepted", "duplicates", "rejected", "seconds"}. Exit code 1 if a row was rejected.`

const TABLES = { products: 'product', contacts: 'contact', orders: 'order' } as const
const FILE = 'file to import; use - to read from standard input'

export function addImport(program: Command, out: Output): void {
  const group = program
    .command('import')
    .description('Import historical data: records, events, or a Stripe account.')
    .addHelpText('after', IMPORT_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor import contacts customers_export.csv --tenant acme --preset shopify-customers',
        'kontor import events history.ndjson --tenant acme --errors rejected.ndjson',
      ),
    )
  for (const table of ['products', 'contacts', 'orders', 'events'] as const) addTable(group as Command, table, out)
  addStripe(group as Command, out)
}

function addTable(group: Command, table: keyof typeof TABLES | 'events', out: Output): void {
  const presets = Object.keys(PRESETS).filter(name => table !== 'events' && PRESETS[name]!.entityType === TABLES[table])
  const command = group
    .command(table)
    .description(`Import ${table} from CSV or NDJSON.`)
    .argument('<file>', FILE)
    .addOption(tenantOption())
    .addOption(new Option('--format <format>', 'file format (default: by file name)').choices(['csv', 'ndjson']))
    .addOption(
      new Option('--delimiter <character>', 'separator of a CSV file: a character, or tab (default: ,)').argParser(
        parseDelimiter,
      ),
    )
    .addOption(
      new Option(
        '--encoding <name>',
        'encoding of the file: utf-8, windows-1252 (Excel), utf-16le … (default: utf-8)',
      ).argParser(parseEncoding),
    )
    .option('--map <file>', `JSON file with the column of each field, for example ${MAPS[table]}`)
    .option('--dry-run', 'only read and check the file')
    .option(
      '--errors <file>',
      'file for rejected rows with line, column and reason (NDJSON, or CSV if it ends in .csv)',
    )
    .addOption(urlOption())
    .addOption(dataOption())
  if (presets.length > 0) command.addOption(new Option('--preset <preset>', 'export format of a shop').choices(presets))
  command
    .addHelpText('after', table === 'events' ? EVENT_NOTES : IMPORT_NOTES)
    .addHelpText(
      'after',
      examples(
        `kontor import ${table} ${table}.csv --tenant acme --dry-run`,
        `kontor import ${table} ${table}.csv --tenant acme --delimiter ';' --encoding windows-1252`,
        ...presets.map(preset => `kontor import ${table} ${table}_export.csv --tenant acme --preset ${preset}`),
      ),
    )
    .action(async (file, options) => {
      const errors = await createErrorsFile(options.errors, [file, options.map])
      await withDatabase(options, out, async session => {
        const plan = await planImport(file, table, options)
        const openTarget = table === 'events' ? openEventTarget : openRecordTarget(TABLES[table])
        await importFile(session, { ...options, errors, tenant: options.tenant!, plan: () => plan, openTarget }, out)
      })
    })
}

const MAPS = {
  products: '{"id": "Handle", "data": {"sku": "Variant SKU"}}',
  contacts: '{"id": "Customer ID", "data": {"city": "City"}}',
  orders: '{"id": "Name", "data": {"total": "Total"}}',
  events: '{"event_type": "Event", "data": {"page": "URL"}}',
}

const EVENT_NOTES = `
CSV columns are event_type, visitor, session_id, user_id, event_id and occurred_at; every other column becomes data.<column>.
A line of NDJSON is a body of POST /v1/track, or a call of Segment's SDKs (track, identify, page, screen, group, alias).
For fields in columns with other names, use --map FILE. Events without an id get one that is derived from the row.
${IMPORT_NOTES}`

function parseDelimiter(text: string): string {
  const delimiter = text === 'tab' || text === '\\t' ? '\t' : text
  if (delimiter.length === 1 && !/["\r\n]/.test(delimiter)) return delimiter
  throw new InvalidArgumentError("Expected one character, for example ';', or tab.")
}

function parseEncoding(text: string): string {
  const name = text.replace(/^cp(?=125\d$)/i, 'windows-')
  try {
    return new TextDecoder(name).encoding
  } catch {
    throw new InvalidArgumentError('Unknown encoding. Examples: utf-8, windows-1252, iso-8859-15, utf-16le.')
  }
}

const STRIPE_NOTES = `
With a key, the command reads all customers, subscriptions, invoices, payments, refunds, credit notes, disputes and coupons of the
account from Stripe. The key needs read permission for them. A file contains responses of Stripe's list endpoints: whole pages, or one
object per line. A file with an incomplete list is rejected.

Kontor records each object as it was at the time when it was read from Stripe. Most objects in a file do not contain that time, so a
file requires --as-of. An import never overrides newer data of an object.
${IMPORT_NOTES}`

function addStripe(group: Command, out: Output): void {
  group
    .command('stripe')
    .description('Import a Stripe account, from its API or from a file.')
    .argument('[file]', FILE)
    .addOption(tenantOption())
    .addOption(keyOption())
    .addOption(keyFileOption())
    .addOption(sourceOption())
    .addOption(namespaceOption())
    .addOption(
      new Option(
        '--as-of <time>',
        'when the file was exported from Stripe, for example 2026-01-31T09:30:00Z',
      ).argParser(parseAsOf),
    )
    .option('--dry-run', 'only read and check the objects')
    .option('--errors <file>', 'file for rejected objects with line and reason')
    .addOption(urlOption())
    .addOption(dataOption())
    .addHelpText('after', STRIPE_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor import stripe --key-file stripe.key --tenant acme',
        'kontor import stripe subscriptions.json --tenant acme --as-of 2026-01-31T09:30:00Z',
      ),
    )
    .action(async (file, options) => {
      const key = await readStripeKey(file, options)
      if (key !== null && options.asOf !== undefined)
        throw new UsageError(
          '--as-of is only valid with a file. With a key, Kontor uses the time at which it reads each object. Omit --as-of.',
        )
      const errors = await createErrorsFile(options.errors, [file])
      await withDatabase(options, out, async session => {
        const namespace = chooseNamespace(await session.admin.sources.list(options.tenant!), options)
        const wanted = { ...options, errors, tenant: options.tenant!, openTarget: openStripeTarget(namespace) }
        if (key !== null) {
          const plan = (signal: AbortSignal) => planStripeApi(session, { key, namespace, signal }, out)
          return importFile(session, { ...wanted, plan }, out)
        }
        const opened = await openStripeFile(file!, 'import stripe')
        try {
          const plan = await planStripeFile(opened.input, options.asOf ?? null, namespace)
          await importFile(session, { ...wanted, plan: () => plan }, out)
        } finally {
          await opened.close()
        }
      })
    })
}

function parseAsOf(text: string): Date {
  const at = parseTimestamp(text)
  if (at === null) throw new InvalidArgumentError(`Expected ${TIME_FORMAT}.`)
  if (at.getTime() > Date.now() + CLOCKS_APART_MS) throw new InvalidArgumentError('The time is in the future.')
  return at
}

/** Reads the file once before anything is sent: an incomplete file must not be imported partially. */
async function planStripeFile(input: Input, asOf: Date | null, namespace: string): Promise<Plan> {
  const reading = stripeReading({ asOf: asOf && Math.floor(asOf.getTime() / 1000) })
  for await (const rows of stripeFileRows(input.chunks()))
    for (const row of rows) if (!isRejection(row)) reading.push(row)
  const checked = input.readBytes()
  return {
    input: { ...input, readBytes: () => input.readBytes() - checked },
    rows: () => stripeFileRows(input.chunks()),
    reading,
    identity: ['stripe', namespace, asOf],
  }
}

/** The progress file is in the data directory, or with DATABASE_URL in the current directory. */
function planStripeApi(
  { config }: Session,
  { key, namespace, signal }: { key: string; namespace: string; signal: AbortSignal },
  out: Output,
): Plan {
  const path = join(config.databaseUrl === null ? config.dataDir : process.cwd(), 'stripe')
  const onPause = (seconds: number) =>
    out.say(`The Stripe API is unavailable, or its rate limit is exceeded. Retrying in ${seconds} s.`)
  const api = { url: config.stripeApiUrl, key, signal, onPause }
  return {
    input: { path, bytes: null, time: new Date(0), readBytes: () => 0 },
    rows: progress => withListNames(stripeApiRows(api, IMPORTED_LISTS, progress.page ?? null), progress, out),
    reading: stripeReading({ asOf: null }),
    identity: ['stripe', namespace, key],
  }
}

/** Prints the name of each list when its first page arrives, with the number of objects so far. */
async function* withListNames(
  pages: AsyncIterable<Row[]>,
  { read }: { read: number },
  out: Output,
): AsyncGenerator<Row[]> {
  let current: string | undefined
  let count = read
  for await (const rows of pages) {
    const list = rows[0]?.page?.list
    if (list !== undefined && list !== current) {
      out.say(`Reading ${list} from Stripe. Objects so far: ${count.toLocaleString('en')}.`)
      current = list
    }
    count += rows.length
    yield rows
  }
}

type FileImport = {
  tenant: string
  plan: (signal: AbortSignal) => Plan
  openTarget: OpenTarget
  dryRun?: true | undefined
  errors?: string | undefined
  url?: string | undefined
}

type PlannedImport = Omit<FileImport, 'plan'> & { plan: Plan }

const SHOWN_REJECTIONS = 5

/** Imports one file and prints the result. */
export async function importFile(session: Session, wanted: FileImport, out: Output): Promise<void> {
  const startedAt = performance.now()
  const { id: tenant } = await session.admin.tenants.show(wanted.tenant)
  const importUntil = async (signal: AbortSignal) => {
    const plan = wanted.plan(signal)
    const run = (target: ImportOptions['target']) =>
      runImport(buildImportOptions({ ...wanted, plan, tenant }, target, signal, out))
    const totals = wanted.dryRun
      ? await run(null)
      : await throughServer(session, { ...wanted, tenant }, run, signal, out)
    printTotals(totals, { ...wanted, plan }, startedAt, out)
  }
  await withStopSignal(importUntil, () => out.say('Stopping: waiting for requests in flight.'))
}

type Run = (target: ImportOptions['target']) => ReturnType<typeof runImport>

async function throughServer(session: Session, wanted: FileImport, run: Run, signal: AbortSignal, out: Output) {
  const server = await reachServer({ config: session.config, url: wanted.url, out })
  const send = openSend(server.url, signal)
  try {
    const { target, close } = await wanted.openTarget(session, wanted.tenant, send)
    try {
      const totals = await run(target)
      if (totals.isWhole && !(await waitUntilApplied(session, wanted.tenant, signal, out))) out.exitCode = 1
      return totals
    } finally {
      await close()
    }
  } finally {
    send.close()
    await server.close()
  }
}

function buildImportOptions(
  { plan, tenant, errors, dryRun }: PlannedImport,
  target: ImportOptions['target'],
  signal: AbortSignal,
  out: Output,
): ImportOptions {
  const { input, rows, reading, identity } = plan
  const line = openProgressLine('rows')
  let shown = 0
  return {
    rows,
    reading,
    target,
    signal,
    journal: openJournal(dryRun ? { ...input, path: null } : input, [tenant, identity], (file, error) =>
      out.say(`The progress file ${file} cannot be written: ${fileErrorReason(error)}. ${WITHOUT_PROGRESS}`),
    ),
    errors: from =>
      openErrorsFile(errors ?? null, from, fileError('written', errors ?? '', dryRun ? undefined : RETRY_HINT)),
    onResumed: read =>
      out.say(`Continuing after the first ${read.toLocaleString('en')} rows, which are already imported.`),
    onProgress: ({ read }) => line.show(read, input.bytes && input.readBytes() / input.bytes),
    onEnd: line.end,
    onRejected(rejections) {
      if (errors !== undefined) return
      for (const rejection of rejections.slice(0, SHOWN_REJECTIONS - shown)) out.say(formatRejection(rejection))
      shown = Math.min(SHOWN_REJECTIONS, shown + rejections.length)
    },
  }
}

const WITHOUT_PROGRESS =
  'After an interruption, the same command starts again at the first row. Imported rows then count as duplicates.'

function formatRejection({ line, column, reason }: Rejection): string {
  return `Line ${line}: ${column === null ? '' : `${column} `}${reason}`
}

function printTotals(
  totals: Totals & { isWhole: boolean },
  { errors, plan, dryRun }: PlannedImport,
  startedAt: number,
  out: Output,
): void {
  const { isWhole, ...counts } = totals
  const seconds = Math.round(performance.now() - startedAt) / 1000
  if (!isWhole) out.say('Stopped. Run the same command again to continue.')
  else if (dryRun) out.say('Nothing was sent: this was a dry run.')
  if (counts.rejected > 0 && isWhole) {
    const where = errors === undefined ? 'use --errors FILE to save them' : `see ${errors}`
    const name = plan.input.path === null ? 'the input' : basename(plan.input.path)
    out.say(`${counts.rejected.toLocaleString('en')} rows of ${name} were rejected: ${where}.`)
  }
  out.json({ ...counts, seconds })
  if (counts.rejected > 0 || !isWhole) out.exitCode = 1
}

/** A file, how to read it, and the options that distinguish this import from other imports of the same file. */
export type Plan = {
  input: Omit<Input, 'chunks'>
  rows: ImportOptions['rows']
  reading: Reading
  identity: unknown
}

type Table = 'products' | 'contacts' | 'orders' | 'events'
type PlanOptions = {
  format?: string | undefined
  preset?: string | undefined
  map?: string | undefined
  delimiter?: string | undefined
  encoding?: string | undefined
}

export async function planImport(
  file: string,
  table: Table,
  { format, preset: name, map, delimiter, encoding }: PlanOptions,
): Promise<Plan> {
  if (name !== undefined && map !== undefined) throw new UsageError('Specify either --preset or --map, not both.')
  const preset = name === undefined ? null : PRESETS[name]!
  for (const [option, value] of Object.entries({ '--preset': name, '--delimiter': delimiter }))
    if (value !== undefined && format === 'ndjson') throw new UsageError(`${option} requires a CSV file.`)
  const mapText = map === undefined ? null : await readTextOption(map)
  const fields = table === 'events' ? EVENT_FIELDS : RECORD_FIELDS
  const mapping = mapText === null ? null : parseMapping(mapText, fields)
  const input = await openInput(file, new Date(), { encoding })
  const check = (columns: string[]) => checkColumns(columns, { table, preset, mapping })
  const isCsv =
    format === 'csv' || preset !== null || delimiter !== undefined || (format === undefined && /\.csv$/i.test(file))
  const isJson = format === 'ndjson' || (format === undefined && /\.(ndjson|jsonl|json)$/i.test(file))
  const chunks = input.chunks()
  // A preset and a map read only the columns that they name.
  const csv = { delimiter, ignoresUnnamed: preset !== null || mapping !== null }
  const rows = isCsv ? csvRows(chunks, check, csv) : isJson ? ndjsonRows(chunks) : detectRows(chunks, check, csv)
  return {
    input,
    rows: () => rows,
    reading: createReading(table, { preset, mapping, input }),
    identity: [table, name, mapText, ...(delimiter || encoding ? [delimiter, encoding] : [])],
  }
}

type ReadOptions = { preset: Preset | null; mapping: Mapping | null }

function createReading(table: Table, { preset, mapping, input }: ReadOptions & { input: Input }): Reading {
  if (preset) return preset.reading(input.time)
  const how = { mapping, time: input.time }
  if (table === 'events') return eventReading(how)
  return recordReading(table === 'products' ? 'product' : table === 'contacts' ? 'contact' : 'order', how)
}

/** JSON starts with a brace; a column name hardly ever does. */
async function* detectRows(
  chunks: AsyncGenerator<string>,
  check: (columns: string[]) => void,
  csv: { ignoresUnnamed: boolean },
): AsyncGenerator<(Row | Rejection)[]> {
  const first = await chunks.next()
  const begin = first.done ? '' : first.value
  async function* all(): AsyncGenerator<string> {
    yield begin
    yield* chunks
  }
  yield* begin.trimStart().startsWith('{') ? ndjsonRows(all()) : csvRows(all(), check, csv)
}

const WITHOUT_TIMES =
  'If the file has no column with the time of the last change, set "sourceUpdatedAt": "now" in the map file: Kontor then uses the time at which the file was last modified.'

/** Fails before the import starts if a column is missing, because every row would be rejected or a misspelled column ignored. */
function checkColumns(columns: string[], { table, preset, mapping }: ReadOptions & { table: Table }): void {
  const required = preset
    ? preset.columns
    : mapping
      ? listColumns(mapping)
      : table === 'events'
        ? ['event_type']
        : ['id', 'sourceUpdatedAt']
  if (!preset && !mapping) rejectConflictingColumns(columns)
  const missing = required
    .filter(names => ![names].flat().some(name => columns.includes(name)))
    .map(names => [names].flat()[0]!)
  if (missing.length === 0) return
  const named = missing.map(name => JSON.stringify(name)).join(', ')
  const why = preset
    ? 'This is not the export format of the preset. Check --preset, or use a map file (--map) instead.'
    : mapping
      ? 'Check the column names in the map file (--map).'
      : [
          'If another column contains this value, specify that column in a map file (--map).',
          ...(missing.includes('sourceUpdatedAt') ? [WITHOUT_TIMES] : []),
        ].join(' ')
  throw new FileError(`The file has no column ${named}. ${why}`)
}

/** A field cannot have both a value and nested fields: one of them would be lost. */
function rejectConflictingColumns(columns: string[]): void {
  const all = new Set(columns)
  for (const inner of columns) {
    const name = listPrefixes(inner).find(prefix => all.has(prefix))
    if (name === undefined) continue
    const [field, object] = [name, inner].map(text => JSON.stringify(text))
    throw new FileError(
      `The columns ${field} and ${object} conflict: ${field} cannot have both a value and nested fields. Rename one, or use a map file (--map).`,
    )
  }
}

/** `a.b.c` has the prefixes `a` and `a.b`. */
function listPrefixes(name: string): string[] {
  const prefixes: string[] = []
  for (let i = name.indexOf('.', 1); i >= 0; i = name.indexOf('.', i + 1)) prefixes.push(name.slice(0, i))
  return prefixes
}

/** Creates the key or source that an import needs; `close` revokes the key. */
export type OpenTarget = (
  session: Session,
  tenant: string,
  send: Send,
) => Promise<{ target: Target; close(): Promise<void> }>

const expires_at = () => new Date(Date.now() + 7 * DAY_MS).toISOString()

export const openRecordTarget =
  (entityType: EntityType): OpenTarget =>
  async ({ admin }, tenant, send) => {
    const scopes = [`${entityType}s:write`]
    const { id, key } = await admin.keys.create({ tenant, kind: 'private', scopes, expires_at: expires_at() })
    return { target: recordTarget(send, key, entityType), close: () => revoke(admin, id) }
  }

/** Uses a server key: its events may be old and may identify people. */
export const openEventTarget: OpenTarget = async ({ admin, pool }, tenant, send) => {
  const { id, key } = await admin.keys.create({ tenant, kind: 'tracking', server: true, expires_at: expires_at() })
  const tenantId = parseTenantId(tenant)!
  const known = async (ids: string[]) => {
    const byKey = new Map(ids.map(eventId => [processedKey(null, eventId), eventId]))
    const found = await findProcessed(
      pool,
      [...byKey.keys()].map(each => ({ tenantId, key: each })),
    )
    return new Set(found.map(claim => byKey.get(claim.key)!))
  }
  return { target: eventTarget(send, key, known), close: () => revoke(admin, id) }
}

const STRIPE_SOURCE = 'Stripe import'

/** All imports into a namespace share one source, which finds duplicates across imports. */
const openStripeTarget =
  (namespace: string): OpenTarget =>
  async ({ admin }, tenant, send) => {
    const name = namespace === 'stripe' ? STRIPE_SOURCE : `${STRIPE_SOURCE} (${namespace})`
    const known = (await admin.sources.list(tenant)).find(
      source => source.name === name && source.namespace === namespace,
    )
    const rate_limit = { events: 100_000_000, per_seconds: 60 }
    const source = known
      ? await admin.sources.rotate(known.id, { what: 'token', overlapHours: 0 })
      : await admin.sources.create({ tenant, type: 'webhook', name, billing: true, namespace, rate_limit })
    if (known && !known.enabled) await admin.sources.update(known.id, { enabled: true })
    return { target: sourceTarget(send, { path: source.path, token: source.token! }), close: async () => {} }
  }

async function revoke(admin: Session['admin'], id: string): Promise<void> {
  await admin.keys.revoke(id, {})
}
