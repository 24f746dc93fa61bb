import fc from 'fast-check'
import { openJson } from '../../../src/domain/json/json.ts'

/** Strings of any UTF-16 units: control characters, lone surrogates, quotes and backslashes included. */
export const anyText = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0xffff }),
      fc.constantFrom(0, 0x22, 0x5c, 0x75, 0x30, 0xd83d, 0xde00, 0x2c, 0x5b, 0x7d),
    ),
    { maxLength: 12 },
  )
  .map(units => String.fromCharCode(...units))

export const anyValue = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    anyText,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter(n => !Number.isInteger(n) || Number.isSafeInteger(n)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 4 }),
  ),
})).value

/** The same value written with whitespace between tokens, with every character escaped, or as JSON.stringify does. */
export const anyJson = fc
  .tuple(anyValue, fc.constantFrom('', ' ', '\n\t '), fc.boolean())
  .map(([value, space, escaped]) => {
    const text = JSON.stringify(value, null, space)
    if (!escaped) return text
    return text.replace(/[^\x20-\x7e\s]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  })

/** The text as PostgreSQL can store it, and whether it was changed for that. */
export function sanitize(text: string): { text: string; sanitized: boolean } {
  const opened = openJson(text)
  return { text: opened.text, sanitized: opened.text !== text }
}
