/** Cuts JSON text into the raw text of its parts: what is stored keeps every digit, and nothing is re-serialised. */

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** The fields of a JSON object as written, in order, repeated keys included. The text must be valid JSON. */
export function objectFields(text: string): [key: string, raw: string][] {
  const fields: [string, string][] = []
  let i = skipSpace(text, skipSpace(text, 0) + 1)
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = endOfString(text, i)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const end = endOfValue(text, start)
    fields.push([keyOf(text.slice(i, keyEnd)), text.slice(start, end)])
    i = skipSpace(text, end)
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1)
  }
  return fields
}

/** The items of a JSON array as written. The text must be valid JSON. */
export function arrayItems(text: string, from = 0): string[] {
  const items: string[] = []
  scanArray(text, skipSpace(text, from), items)
  return items
}

/** The items of the array that is an object's field `key`, in one pass over the text. */
export function arrayItemsOfField(text: string, key: string): string[] {
  let items: string[] = []
  let i = skipSpace(text, skipSpace(text, 0) + 1)
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = endOfString(text, i)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    let end: number
    if (text.charCodeAt(start) === OPEN_BRACKET && keyOf(text.slice(i, keyEnd)) === key) {
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
    if (keyOf(text.slice(start, keyEnd)) !== key) continue
    const kept = out + text.slice(copied, start)
    // the last field takes the comma before it along
    out = last ? kept.replace(/,\s*$/, '') : kept
    copied = i
  }
  return out + text.slice(copied)
}

function keyOf(raw: string): string {
  return raw.includes('\\') ? JSON.parse(raw) : raw.slice(1, -1)
}

/** Index after the array that begins at `from`. */
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

/** Index after the closing quote of the string that begins at `from`. */
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
