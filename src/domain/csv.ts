export function csvLine(cells: string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

// Including the full-width characters that East Asian spreadsheets accept. Where the decimal separator is a comma, spreadsheets separate
// cells at semicolons and ignore quotation marks inside a line, so a formula also starts after a semicolon, a tab or a line break.
const FORMULA_START = /^(?=[-=+@\t\r\n＝＋－＠])|(?<=[;\t\r\n])(?=[-=+@＝＋－＠])/g

/** Adds an apostrophe before text that a spreadsheet would execute as a formula, because anyone can send names. */
function csvCell(text: string): string {
  const safe = /^-[\d.]+$/.test(text) ? text : text.replace(FORMULA_START, "'")
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
