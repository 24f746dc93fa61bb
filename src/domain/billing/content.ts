/** What something says, as text and as a short name for that text. */

import { hash } from 'node:crypto'

/** JSON with sorted keys: a database may hand back the keys in another order. */
export function contentText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(contentText).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = value as Record<string, unknown>
  const keys = Object.keys(fields).sort()
  return `{${keys.map(key => `${JSON.stringify(key)}:${contentText(fields[key])}`).join()}}`
}

/** 32 hexadecimal digits: a uuid to PostgreSQL. */
export function digestOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 32)
}

/** Of something whose keys are always made in the same order. */
export function contentHash(content: object): string {
  return digestOf(JSON.stringify(content))
}
