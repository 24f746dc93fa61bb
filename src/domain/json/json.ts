/**
 * JSON as it comes in: parsed without losing digits, cut into raw slices without re-serialising, and kept to what
 * PostgreSQL's jsonb can hold.
 */

import { endOfString } from './slices.ts'

export { arrayItems, objectFields } from './slices.ts'

export type JsonObject = Record<string, unknown>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** jsonb parses recursively: far below its limit, and far above any real document. */
export const MAX_DEPTH = 200
/** Numbers beyond a double's range (1e400), or written with more characters than this, are not data. */
const MAX_NUMBER_LENGTH = 1000
/** jsonb writes exponents out: 1e-16000 would print 16,000 digits. Doubles end at 1e308 and 5e-324. */
const MAX_EXPONENT = 400

const QUOTE = 0x22
const MINUS = 0x2d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

const TOO_DEEP = 1
/** Holds a number of 16 or more characters: perhaps an integer beyond 2^53. */
const WIDE_NUMBER = 2
const UNSTORABLE_NUMBER = 4
const UNSTORABLE_TEXT = 8

/** One pass over the text, before anything is built from it; it need not be valid JSON. */
function survey(text: string): number {
  let flags = holdsStorableText(text) ? 0 : UNSTORABLE_TEXT
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) {
      i = endOfString(text, i) - 1
    } else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      if (++depth > MAX_DEPTH) return flags | TOO_DEEP
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
 * JSON.parse, with integers beyond 2^53 as strings of their exact digits and numbers that nothing can hold as NaN.
 * Throws SyntaxError, also for what is nested too deeply.
 */
export function parseJson(text: string): unknown {
  return parseSurveyed(text, survey(text))
}

function parseSurveyed(text: string, flags: number): unknown {
  if (flags & TOO_DEEP) throw new SyntaxError(`The JSON is nested deeper than ${MAX_DEPTH} levels`)
  try {
    if (flags & UNSTORABLE_NUMBER) return JSON.parse(text, exactNumber)
    return JSON.parse(flags & WIDE_NUMBER ? withQuotedIntegers(text) : text)
  } catch (error) {
    throw new SyntaxError(`The body is not valid JSON: ${describeSyntaxError(text, error as Error)}`)
  }
}

/**
 * Integers beyond 2^53 made strings, where valid JSON may have a number: three times as fast as a reviver, which is
 * called for every value there is.
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

/** Whether a token is a value by what surrounds it, not a key or part of malformed text. */
function isValueAt(text: string, start: number, end: number): boolean {
  let before = start - 1
  while (isSpace(text.charCodeAt(before))) before--
  let after = end
  while (isSpace(text.charCodeAt(after))) after++
  return (
    (before < 0 || ':,['.includes(text[before]!)) && (after >= text.length || ',]}'.includes(text[after]!))
  )
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

/** V8 quotes the text around the fault; senders' data does not belong in messages, its position does. */
function describeSyntaxError(text: string, error: Error): string {
  if (text.trim() === '') return 'it is empty'
  const position = /position (\d+)/.exec(error.message)?.[1]
  if (position !== undefined) return `unexpected character at position ${position}`
  return /end of JSON input|Unterminated/.test(error.message) ? 'it ends too early' : 'unexpected character'
}

/** Whether PostgreSQL can hold this JSON as it is. */
export function storable(text: string): boolean {
  return (survey(text) & (UNSTORABLE_TEXT | UNSTORABLE_NUMBER)) === 0
}

/** Valid JSON text in the form PostgreSQL can hold: bad text becomes U+FFFD, impossible numbers become null. */
function sanitize(text: string, flags: number): { text: string; sanitized: boolean } {
  if ((flags & (UNSTORABLE_TEXT | UNSTORABLE_NUMBER)) === 0) return { text, sanitized: false }
  const wellFormed = flags & UNSTORABLE_TEXT ? withStorableText(text.toWellFormed()) : text
  return {
    text: flags & UNSTORABLE_NUMBER ? withStorableNumbers(wellFormed) : wellFormed,
    sanitized: true,
  }
}

/** Backslashes stand only inside strings, and every escape is stepped over whole: `\\u0000` is not an escaped NUL. */
function withStorableText(text: string): string {
  return text.replace(/\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u(?:0000|[dD][89a-fA-F]..)|\\./g, sequence =>
    sequence.length === 6 ? '\\ufffd' : sequence,
  )
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

/** A body opened for reading: what it says, and the same as text that PostgreSQL can hold. */
export type Document = {
  value: unknown
  text: string
  original: string
  /** There is nothing in it that JSON.parse or PostgreSQL would change: opened again, it needs no survey. */
  plain: boolean
}

/** parseJson and sanitize in one: the value is read from the sanitized text, so both always agree. */
export function openJson(original: string, isKnownPlain = false): Document {
  const flags = isKnownPlain ? 0 : survey(original)
  const value = parseSurveyed(original, flags)
  const { text, sanitized } = sanitize(original, flags)
  return { value: sanitized ? parseSurveyed(text, flags) : value, text, original, plain: flags === 0 }
}

/** JSON pointers of the strings, keys and numbers in a parsed value that PostgreSQL cannot hold. */
export function unstorablePointers(value: unknown): string[] {
  const pointers: string[] = []
  collectUnstorable(value, '', pointers)
  return pointers
}

function collectUnstorable(value: unknown, pointer: string, pointers: string[]): void {
  if (typeof value === 'string') {
    if (!isStorableText(value)) pointers.push(pointer)
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) pointers.push(pointer)
  } else if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) collectUnstorable(value[i], `${pointer}/${i}`, pointers)
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      const storableKey = isStorableText(key)
      const at = `${pointer}/${pointerToken(storableKey ? key : storableText(key))}`
      if (!storableKey) pointers.push(at)
      collectUnstorable(value[key], at, pointers)
    }
  }
}

function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** Plain text (not JSON) as PostgreSQL can hold it. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}

export function pointerToken(key: string): string {
  return key.includes('~') || key.includes('/') ? key.replaceAll('~', '~0').replaceAll('/', '~1') : key
}
