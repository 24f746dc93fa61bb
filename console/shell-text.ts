/** Quotes text for a shell, so that nothing in it is expanded. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** The same, but expands a variable name at the end ($TOKEN). */
export function quoted(text: string): string {
  return /^[\w :/-]*\$[A-Z_]+$/.test(text) ? `"${text}"` : literal(text)
}
