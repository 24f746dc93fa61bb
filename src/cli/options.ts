import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { fileErrorReason } from '../admin/error.ts'
import { MAX_RATE_EVENTS, MAX_RATE_SECONDS } from '../domain/inbound/source-config.ts'
import { DEFAULT_OVERLAP_HOURS } from '../domain/tenants/credentials.ts'
import { UsageError } from './errors.ts'

/** The "Examples" section at the end of a command's help. */
export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map(line => `  ${line}`).join('\n')}`
}

/** Parses a header given as `name: value`. */
export function parseHeader(text: string, example: string): [name: string, value: string] {
  const colon = text.indexOf(':')
  const name = text.slice(0, colon)
  const value = text.slice(colon + 1).trimStart()
  if (colon < 1 || /\s/.test(name) || /[\r\n]/.test(value))
    throw new InvalidArgumentError(`Expected name:value, for example ${JSON.stringify(example)}.`)
  return [name, value]
}

/** For options that take the end of a period. */
export const END_OF_DAY = 'a date without a time means the end of that day (UTC)'

export const jsonOption = () => new Option('--json', 'print JSON instead of a table')

/** `what`: the credential that is replaced. */
export const overlapOption = (what: string) =>
  new Option(
    '--overlap-hours <n>',
    `number of hours for which the previous ${what} remains valid (default: ${DEFAULT_OVERLAP_HOURS})`,
  ).argParser(text => (text.trim() === '' ? Number.NaN : Number(text)))

type RateLimit = { events: number; per_seconds: number }

export function parseRateLimit(text: string): RateLimit {
  const limit = readRateLimit(text)
  if (limit === null) throw new InvalidArgumentError(RATE_LIMIT_FORMAT)
  return limit
}

/** `off` removes the limit. Commander replaces null with an empty string, so the command converts it. */
export function parseRateLimitOrOff(text: string): RateLimit | 'off' {
  if (text === 'off') return text
  const limit = readRateLimit(text)
  if (limit === null) throw new InvalidArgumentError(`${RATE_LIMIT_FORMAT} For no limit, use off.`)
  return limit
}

const RATE_LIMIT_FORMAT =
  `Expected events/seconds, both at least 1, at most ${MAX_RATE_EVENTS.toLocaleString('en')} events and ` +
  `${MAX_RATE_SECONDS.toLocaleString('en')} seconds, for example 100/60 for 100 events per minute.`

function readRateLimit(text: string): RateLimit | null {
  const [, events, seconds] = /^(\d{1,9})\/(\d{1,9})s?$/.exec(text.trim()) ?? []
  const limit = { events: Number(events), per_seconds: Number(seconds) }
  const isWithin = (value: number, most: number) => value >= 1 && value <= most
  return isWithin(limit.events, MAX_RATE_EVENTS) && isWithin(limit.per_seconds, MAX_RATE_SECONDS) ? limit : null
}

type Given = { value: string | undefined; file: string | undefined }

/**
 * Reads secrets given as a value, on standard input (`-`) or in a file. Every user of the machine can see a command line, and
 * the shell stores it. A trailing newline is not part of the secret.
 */
export async function readSecretOptions<Name extends string>(
  given: Record<Name, Given>,
): Promise<{ [name in Name]: string | undefined }> {
  const entries = Object.entries(given) as [Name, Given][]
  if (entries.filter(([, { value }]) => value === '-').length > 1)
    throw new UsageError('Only one secret can be read from standard input.')
  const read: Partial<Record<Name, string | undefined>> = {}
  for (const [name, { value, file }] of entries) {
    if (value !== undefined && file !== undefined)
      throw new UsageError(`Specify either --${name} or --${name}-file, not both.`)
    if (value === '-') read[name] = withoutLineEnd(await text(process.stdin))
    else read[name] = file === undefined ? value : withoutLineEnd(await readTextOption(file))
  }
  return read as { [name in Name]: string | undefined }
}

function withoutLineEnd(secret: string): string {
  return secret.replace(/\r?\n$/, '')
}

/** Reads a file given on the command line. */
export async function readTextOption(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${fileErrorReason(error as Error)}.`)
  }
}
