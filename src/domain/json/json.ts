/**
 * JSON from senders: parsed without losing digits, cut into raw slices without re-serializing, and limited to what
 * PostgreSQL's jsonb can store.
 */

import { hash } from 'node:crypto'

export type JsonObject = Record<string, unknown>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** jsonb parses recursively. This is far below its limit and far above any real document. */
export const MAX_DEPTH = 200
/** A batch with items that are nested too deep is read up to this depth, so that its other items are accepted. */
const MAX_READ_DEPTH = 2_000
/** A number with more characters is not accepted as data. */
const MAX_NUMBER_LENGTH = 1000
/** jsonb prints numbers without exponents: 1e-16000 has 16,000 digits. Doubles end at 1e308 and 5e-324. */
const MAX_EXPONENT = 400

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

const TOO_DEEP = 1
/** Contains a number of 16 or more characters, which may be an integer beyond 2^53. */
const WIDE_NUMBER = 2
const UNSTORABLE_NUMBER = 4
const UNSTORABLE_TEXT = 8
const UNREADABLE = 16

/** Scans the text once, before parsing. The text need not be valid JSON. */
function survey(text: string): number {
  let flags = holdsStorableText(text) ? 0 : UNSTORABLE_TEXT
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) {
      i = endOfString(text, i) - 1
    } else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      if (++depth > MAX_DEPTH) flags |= TOO_DEEP
      if (depth > MAX_READ_DEPTH) return flags | UNREADABLE
    } else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) {
      depth--
    } else if (isDigit(c)) {
      const start = i
      i = endOfNumber(text, i)
      const length = i - start
      if (length > 15) flags |= WIDE_NUMBER
      if (length > 3 && isUnstorableNumber(text.slice(start, i))) flags |= UNSTORABLE_NUMBER
      i--
    }
  }
  return flags
}

function holdsStorableText(text: string): boolean {
  if (!text.isWellFormed()) return false
  return !/\\u(?:0000|[dD][89a-fA-F])/.test(text) || withStorableText(text) === text
}

function isDigit(c: number): boolean {
  return c >= 0x30 && c <= 0x39
}

function endOfNumber(text: string, from: number): number {
  let i = from
  for (; i < text.length; i++) {
    const c = text.charCodeAt(i)
    // digits, '.', '+', '-', 'e', 'E'
    if (!isDigit(c) && c !== 0x2e && c !== 0x2b && c !== 0x2d && c !== 0x65 && c !== 0x45) break
  }
  return i
}

/** `token` is without its sign. */
function isUnstorableNumber(token: string): boolean {
  if (token.length > MAX_NUMBER_LENGTH) return true
  const e = Math.max(token.indexOf('e'), token.indexOf('E'))
  if (e >= 0 && Math.abs(Number(token.slice(e + 1))) > MAX_EXPONENT) return true
  return token.length > 300 || e >= 0 ? Math.abs(Number(token)) === Number.POSITIVE_INFINITY : false
}

/**
 * JSON.parse, but integers beyond 2^53 become strings with their exact digits, and unstorable numbers become NaN.
 * Throws SyntaxError, also if the nesting is too deep. `subject`: what the message calls the text.
 */
export function parseJson(text: string, subject = 'The body'): unknown {
  const flags = survey(text)
  if (flags & TOO_DEEP) throw new SyntaxError(NESTED_TOO_DEEP)
  return parseSurveyed(text, flags, subject)
}

export const NESTED_TOO_DEEP = `The JSON is nested deeper than ${MAX_DEPTH} levels`

function parseSurveyed(text: string, flags: number, subject = 'The body'): unknown {
  if (flags & UNREADABLE) throw new SyntaxError(NESTED_TOO_DEEP)
  try {
    if (flags & UNSTORABLE_NUMBER) return JSON.parse(text, exactNumber)
    return JSON.parse(flags & WIDE_NUMBER ? withQuotedIntegers(text) : text)
  } catch (error) {
    throw new SyntaxError(`${subject} is not valid JSON: ${describeSyntaxError(text, error as Error)}`)
  }
}

/**
 * Quotes integers beyond 2^53. This is three times as fast as a reviver, which is called for every value.
 */
function withQuotedIntegers(text: string): string {
  let out = ''
  let copied = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) {
      i = endOfString(text, i) - 1
    } else if (isDigit(c)) {
      const start = text.charCodeAt(i - 1) === MINUS ? i - 1 : i
      i = endOfNumber(text, i)
      if (i - start > 15 && isWideInteger(text.slice(start, i)) && isValueAt(text, start, i)) {
        out += `${text.slice(copied, start)}"${text.slice(start, i)}"`
        copied = i
      }
      i--
    }
  }
  return out + text.slice(copied)
}

function isWideInteger(token: string): boolean {
  return /^-?[1-9]\d*$/.test(token) && !Number.isSafeInteger(Number(token))
}

/** Whether the surrounding characters make a token a value, not a key or part of malformed text. */
function isValueAt(text: string, start: number, end: number): boolean {
  let before = start - 1
  while (isSpace(text.charCodeAt(before))) before--
  let after = end
  while (isSpace(text.charCodeAt(after))) after++
  return (before < 0 || ':,['.includes(text[before]!)) && (after >= text.length || ',]}'.includes(text[after]!))
}

function isSpace(c: number): boolean {
  return c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09
}

function exactNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source
  if (typeof value !== 'number' || source === undefined) return value
  if (isUnstorableNumber(source.startsWith('-') ? source.slice(1) : source)) return Number.NaN
  return isWideInteger(source) ? source : value
}

/** V8's message quotes the text around the error. Only the position may be reported: the text is the sender's data. */
function describeSyntaxError(text: string, error: Error): string {
  if (text.trim() === '') return 'it is empty'
  const position = /position (\d+)/.exec(error.message)?.[1]
  if (position !== undefined) return `unexpected character at position ${position}`
  return /end of JSON input|Unterminated/.test(error.message) ? 'it is incomplete' : 'unexpected character'
}

/** Whether PostgreSQL can store this JSON unchanged. */
export function storable(text: string): boolean {
  return (survey(text) & (UNSTORABLE_TEXT | UNSTORABLE_NUMBER)) === 0
}

/** Makes valid JSON storable in PostgreSQL: invalid characters become U+FFFD, unstorable numbers become null. */
function sanitize(text: string, flags: number): { text: string; sanitized: boolean } {
  if ((flags & (UNSTORABLE_TEXT | UNSTORABLE_NUMBER)) === 0) return { text, sanitized: false }
  const wellFormed = flags & UNSTORABLE_TEXT ? withStorableText(text.toWellFormed()) : text
  return { text: flags & UNSTORABLE_NUMBER ? withStorableNumbers(wellFormed) : wellFormed, sanitized: true }
}

/**
 * Replaces escaped NULs and unpaired surrogates. Backslashes occur only inside strings, and every escape is read as a
 * whole: `\\u0000` is not an escaped NUL. A scan, because a callback for each of a million escapes takes half a second.
 */
function withStorableText(text: string): string {
  let out = ''
  let copied = 0
  for (let i = text.indexOf('\\'); i >= 0; i = text.indexOf('\\', i)) {
    if (isSurrogate(text, i, 0x8, 0xb) && isSurrogate(text, i + 6, 0xc, 0xf)) i += 12
    else if (text.startsWith('u0000', i + 1) || isSurrogate(text, i, 0x8, 0xf)) {
      out += `${text.slice(copied, i)}\\ufffd`
      i += 6
      copied = i
    } else i += 2
  }
  return out + text.slice(copied)
}

/** Whether an escape from `\ud<low>00` to `\ud<high>ff` is at this index. */
function isSurrogate(text: string, at: number, low: number, high: number): boolean {
  if (text.charCodeAt(at) !== BACKSLASH || text.charCodeAt(at + 1) !== 0x75) return false
  if ((text.charCodeAt(at + 2) | 0x20) !== 0x64) return false
  const digit = Number.parseInt(text.charAt(at + 3), 16)
  return digit >= low && digit <= high
}

function withStorableNumbers(text: string): string {
  let out = ''
  let copied = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) {
      i = endOfString(text, i) - 1
    } else if (isDigit(c)) {
      const start = i
      i = endOfNumber(text, i)
      if (isUnstorableNumber(text.slice(start, i))) {
        const sign = text.charCodeAt(start - 1) === MINUS ? 1 : 0
        out += `${text.slice(copied, start - sign)}null`
        copied = i
      }
      i--
    }
  }
  return out + text.slice(copied)
}

/** A parsed body, and its text in the form that PostgreSQL can store. */
export type Document = {
  value: unknown
  text: string
  original: string
  /** Neither JSON.parse nor PostgreSQL changes anything in it: it need not be scanned again. */
  plain: boolean
  /** A part of it is nested too deep to be stored. */
  isTooDeep: boolean
}

/** Parses and sanitizes. The value is read from the sanitized text, so both always agree. */
export function openJson(original: string, isKnownPlain = false): Document {
  const flags = isKnownPlain ? 0 : survey(original)
  const value = parseSurveyed(original, flags)
  const { text, sanitized } = sanitize(original, flags)
  return {
    ...{ value: sanitized ? parseSurveyed(text, flags) : value, text, original },
    ...{ plain: flags === 0, isTooDeep: (flags & TOO_DEEP) !== 0 },
  }
}

/** How many objects and arrays surround the innermost value of valid JSON. */
export function nestingDepth(text: string): number {
  let [depth, deepest] = [0, 0]
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) i = endOfString(text, i) - 1
    else if (c === OPEN_BRACE || c === OPEN_BRACKET) deepest = Math.max(deepest, ++depth)
    else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) depth--
  }
  return deepest
}

/** The message if the place of the unstorable value is not known. */
export const UNSTORABLE = 'contains a NUL character, an unpaired surrogate or a number out of range'

type Unstorable = { pointer: string; message: string }

/** The strings, keys and numbers that PostgreSQL cannot store, with the reason. */
export function findUnstorable(value: unknown): Unstorable[] {
  const found: Unstorable[] = []
  collectUnstorable(value, '', found)
  return found
}

function collectUnstorable(value: unknown, pointer: string, found: Unstorable[]): void {
  if (typeof value === 'string') {
    const message = unstorableText(value)
    if (message !== null) found.push({ pointer, message })
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) found.push({ pointer, message: 'is a number out of range' })
  } else if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) collectUnstorable(value[i], `${pointer}/${i}`, found)
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      const message = unstorableText(key)
      const at = `${pointer}/${pointerToken(message === null ? key : storableText(key))}`
      if (message !== null) found.push({ pointer: at, message: `has a name that ${message}` })
      collectUnstorable(value[key], at, found)
    }
  }
}

function unstorableText(text: string): string | null {
  if (text.includes('\0')) return 'contains a NUL character'
  return text.isWellFormed() ? null : 'contains an unpaired surrogate'
}

/** Makes plain text (not JSON) storable in PostgreSQL. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}

export function pointerToken(key: string): string {
  return key.includes('~') || key.includes('/') ? key.replaceAll('~', '~0').replaceAll('/', '~1') : key
}

/** The value at a dotted path (`data.object.id`, `items.0.sku`), through own fields only. */
export function valueAt(body: unknown, path: string): unknown {
  let value: unknown = body
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as JsonObject)[key]
  }
  return value
}

// Slices: JSON text is cut into the raw text of its parts, so that stored values keep every digit.

/** The fields of a JSON object as written, in order, repeated keys included. The text must be valid JSON. */
export function objectFields(text: string): [key: string, raw: string][] {
  const fields: [string, string][] = []
  let i = skipSpace(text, skipSpace(text, 0) + 1)
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = endOfString(text, i)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const end = endOfValue(text, start)
    fields.push([decodeKey(text.slice(i, keyEnd)), text.slice(start, end)])
    i = skipSpace(text, end)
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1)
  }
  return fields
}

/** The value of a JSON object's field `key` as written, of the last one if it is repeated. The text must be valid JSON. */
export function rawField(text: string, key: string): string | null {
  let found: string | null = null
  let i = skipSpace(text, skipSpace(text, 0) + 1)
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = endOfString(text, i)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const end = endOfValue(text, start)
    if (decodeKey(text.slice(i, keyEnd)) === key) found = text.slice(start, end)
    i = skipSpace(text, end)
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1)
  }
  return found
}

/** The items of a JSON array as written. The text must be valid JSON. */
export function arrayItems(text: string, from = 0): string[] {
  const items: string[] = []
  scanArray(text, skipSpace(text, from), items)
  return items
}

/** The items of the array that is an object's field `key`, read in one pass. */
export function arrayItemsOfField(text: string, key: string): string[] {
  let items: string[] = []
  let i = skipSpace(text, skipSpace(text, 0) + 1)
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = endOfString(text, i)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    let end: number
    if (text.charCodeAt(start) === OPEN_BRACKET && decodeKey(text.slice(i, keyEnd)) === key) {
      items = []
      end = scanArray(text, start, items)
    } else {
      end = endOfValue(text, start)
    }
    i = skipSpace(text, end)
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1)
  }
  return items
}

/** The object's text without its field `key`. */
export function withoutField(text: string, key: string): string {
  const open = skipSpace(text, 0) + 1
  let out = ''
  let copied = 0
  let i = skipSpace(text, open)
  while (text.charCodeAt(i) === QUOTE) {
    const start = i
    const keyEnd = endOfString(text, i)
    i = skipSpace(text, endOfValue(text, skipSpace(text, skipSpace(text, keyEnd) + 1)))
    const last = text.charCodeAt(i) !== COMMA
    if (!last) i = skipSpace(text, i + 1)
    if (decodeKey(text.slice(start, keyEnd)) !== key) continue
    const kept = out + text.slice(copied, start)
    // with the last field, the comma before it is removed
    out = last ? kept.replace(/,\s*$/, '') : kept
    copied = i
  }
  return out + text.slice(copied)
}

function decodeKey(raw: string): string {
  return raw.includes('\\') ? JSON.parse(raw) : raw.slice(1, -1)
}

/** The index after the array that starts at `from`. */
function scanArray(text: string, from: number, items: string[]): number {
  let i = skipSpace(text, from + 1)
  while (i < text.length && text.charCodeAt(i) !== CLOSE_BRACKET) {
    const end = endOfValue(text, i)
    items.push(text.slice(i, end))
    i = skipSpace(text, end)
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1)
  }
  return i + 1
}

function skipSpace(text: string, from: number): number {
  let i = from
  while (text.charCodeAt(i) <= 0x20) i++
  return i
}

/** The index after the string that starts at `from`. */
export function endOfString(text: string, from: number): number {
  let quote = text.indexOf('"', from + 1)
  while (quote >= 0) {
    let before = quote - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    if ((quote - before) % 2 === 1) return quote + 1
    quote = text.indexOf('"', quote + 1)
  }
  return text.length
}

function endOfValue(text: string, from: number): number {
  let depth = 0
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) {
      i = endOfString(text, i) - 1
      if (depth === 0) return i + 1
    } else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      depth++
    } else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) {
      if (depth === 0) return i
      if (--depth === 0) return i + 1
    } else if (depth === 0 && (c === COMMA || c <= 0x20)) {
      return i
    }
  }
  return text.length
}

/** JSON with sorted keys: PostgreSQL may return keys in another order. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = value as Record<string, unknown>
  const keys = Object.keys(fields).sort()
  return `{${keys.map(key => `${JSON.stringify(key)}:${canonicalJson(fields[key])}`).join()}}`
}

/** 32 hexadecimal digits, which PostgreSQL accepts as a uuid. */
export function textDigest(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 32)
}

/** `content`: its keys must always have the same order. */
export function contentHash(content: object): string {
  return textDigest(JSON.stringify(content))
}

const MAX_CHANGE_DEPTH = 3
const MAX_CHANGED_FIELDS = 50
const MAX_FIELD_NAME = 100

/** Names of the fields that differ between two JSON texts (`data.amount`); null: one of them is not an object. */
export function changedFields(before: string, after: string): string[] | null {
  const [a, b] = [parseOrNull(before), parseOrNull(after)]
  if (!isObject(a) || !isObject(b)) return null
  return differences(a, b, 1).slice(0, MAX_CHANGED_FIELDS)
}

function differences(a: Record<string, unknown>, b: Record<string, unknown>, depth: number): string[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return names.flatMap(name => {
    const [was, is] = [a[name], b[name]]
    const shown = name.slice(0, MAX_FIELD_NAME)
    if (isObject(was) && isObject(is) && depth < MAX_CHANGE_DEPTH)
      return differences(was, is, depth + 1).map(inner => `${shown}.${inner}`)
    return JSON.stringify(was) === JSON.stringify(is) ? [] : [shown]
  })
}

function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
