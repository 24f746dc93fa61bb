import type { Cell } from './columns.ts'

export function csvLine(cells: string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

/** What a spreadsheet would take for a formula gets an apostrophe: names come from strangers. */
function csvCell(text: string): string {
  // also in the wide signs that spreadsheets of East Asia take for the same
  const isFormula = /^[=+@\t\r\n＝＋－＠]|^-(?![\d.]+$)/.test(text)
  const safe = isFormula ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export function csvText(cell: Cell): string {
  if (cell === null || cell === undefined) return ''
  return cell instanceof Date ? cell.toISOString() : String(cell)
}
