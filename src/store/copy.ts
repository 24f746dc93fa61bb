import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'

/**
 * Sends rows with COPY, which reads them in less than half the time that unpacking JSON or arrays takes. `lines` are
 * made of `copyText` fields, tabs between them and a newline at the end of each row.
 */
export function copyRows(client: pg.PoolClient, statement: string, lines: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = client.query(copyFrom(statement))
    stream.on('error', reject)
    stream.on('finish', resolve)
    stream.end(lines)
  })
}

const SPECIAL = /[\\\t\n\r]/
const ALL_SPECIAL = /[\\\t\n\r]/g
const ESCAPES: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }

/** A text field of COPY's text format. */
export function copyText(value: string | null): string {
  if (value === null) return '\\N'
  return SPECIAL.test(value) ? value.replace(ALL_SPECIAL, character => ESCAPES[character]!) : value
}
