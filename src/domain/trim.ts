// For characters other than white space. /x+$/ takes quadratic time: it tries every position of a run that ends before the end.

/** The text without the characters at its start for which `isTrimmed` is true. */
export function trimStart(text: string, isTrimmed: (char: string) => boolean): string {
  let start = 0
  while (start < text.length && isTrimmed(text[start]!)) start++
  return text.slice(start)
}

/** The text without the characters at its end for which `isTrimmed` is true. */
export function trimEnd(text: string, isTrimmed: (char: string) => boolean): string {
  let end = text.length
  while (end > 0 && isTrimmed(text[end - 1]!)) end--
  return text.slice(0, end)
}
