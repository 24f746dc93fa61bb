/** Text for a shell that takes it as it stands, whatever is in it. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** The same, but a text that ends in the name of a variable ($TOKEN) is left open to it. */
export function quoted(text: string): string {
  return /^[\w :/-]*\$[A-Z_]+$/.test(text) ? `"${text}"` : literal(text)
}
