import { type FileHandle, open } from 'node:fs/promises'
import type { Rejection } from './row.ts'

/** The file for rejected rows: one JSON object per line, or CSV if its name ends in .csv. */
export type ErrorsFile = {
  write(rejections: Rejection[]): Promise<void>
  bytes(): number
  close(): Promise<void>
}

const NONE: ErrorsFile = { write: async () => {}, bytes: () => 0, close: async () => {} }

/** An interrupted import may have written rejections after its last settled row. They are written again, starting at byte `from`. */
export async function openErrorsFile(path: string | null, from: number): Promise<ErrorsFile> {
  if (path === null) return NONE
  const file: FileHandle = await open(path, from > 0 ? 'r+' : 'w').catch(() => open(path, 'w'))
  const size = Math.min(from, (await file.stat()).size)
  await file.truncate(size)
  let written = size
  const format = path.toLowerCase().endsWith('.csv') ? csvLine : ndjsonLine
  const append = async (text: string) => {
    written += (await file.write(text, written)).bytesWritten
  }
  if (format === csvLine && written === 0) await append('line,column,reason\r\n')
  return {
    write: rejections => append(rejections.map(format).join('')),
    bytes: () => written,
    close: () => file.close(),
  }
}

function ndjsonLine(rejection: Rejection): string {
  return `${JSON.stringify(rejection)}\n`
}

function csvLine({ line, column, reason }: Rejection): string {
  // a column name from the file may look like a formula to a spreadsheet
  const quoted = (text: string) => `"${text.replace(/^(?=[=+\-@\t\r\n])/, "'").replaceAll('"', '""')}"`
  return `${line},${quoted(column ?? '')},${quoted(reason)}\r\n`
}
