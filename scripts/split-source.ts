export type SourceString = { line: number; text: string; before: string }

const CONTEXT = 2_000

/**
 * Takes TypeScript apart as far as the checks need it: the code with comments, strings and regular expressions blanked
 * out (line breaks stay), and the strings, each with the blanked code before it.
 */
export function splitSource(source: string): { code: string; strings: SourceString[] } {
  const strings: SourceString[] = []
  // For each open template: the depth of braces at which its `${` ends.
  const templates: number[] = []
  let code = ''
  let depth = 0
  let i = 0

  const lineAt = (index: number) => source.slice(0, index).split('\n').length
  const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ')
  const skip = (end: number) => {
    code += blank(source.slice(i, end))
    i = end
  }
  const readString = (end: number, text: string) => {
    strings.push({ line: lineAt(i), text, before: code.slice(-CONTEXT) })
    skip(end)
  }
  /** From the opening backtick, or from the brace that closes a `${…}`, to the next `${` or the end. */
  const readTemplate = () => {
    const end = endOfTemplatePart(source, i + 1)
    readString(end, source.slice(i + 1, end - (source[end - 1] === '`' ? 1 : 2)))
    if (source[end - 1] === '{') templates.push(depth)
  }

  while (i < source.length) {
    const char = source[i]!
    if (source.startsWith('//', i)) skip(endOf(source, '\n', i))
    else if (source.startsWith('/*', i)) skip(endOf(source, '*/', i + 2) + 2)
    else if (char === "'" || char === '"') {
      const end = endOfQuoted(source, i)
      readString(end, source.slice(i + 1, end - 1))
    } else if (char === '`') readTemplate()
    else if (char === '}' && templates.at(-1) === depth) {
      templates.pop()
      readTemplate()
    } else if (char === '/' && startsRegExp(code)) skip(endOfRegExp(source, i))
    else {
      if (char === '{') depth++
      if (char === '}') depth--
      code += char
      i++
    }
  }
  return { code, strings }
}

function endOf(source: string, mark: string, from: number): number {
  const at = source.indexOf(mark, from)
  return at === -1 ? source.length : at
}

function endOfQuoted(source: string, start: number): number {
  const quote = source[start]
  for (let i = start + 1; i < source.length; i++) {
    if (source[i] === '\\') i++
    else if (source[i] === quote) return i + 1
  }
  return source.length
}

function endOfTemplatePart(source: string, start: number): number {
  for (let i = start; i < source.length; i++) {
    if (source[i] === '\\') i++
    else if (source[i] === '`') return i + 1
    else if (source.startsWith('${', i)) return i + 2
  }
  return source.length
}

/** A slash after an operator or a keyword opens a regular expression; after a value it divides. */
function startsRegExp(codeBefore: string): boolean {
  return /(^|[(,=:[!&|?{};+\-*%<>~\n]|\b(return|typeof|case|in|of|await))\s*$/.test(codeBefore.slice(-80))
}

function endOfRegExp(source: string, start: number): number {
  let isInClass = false
  for (let i = start + 1; i < source.length; i++) {
    const char = source[i]
    if (char === '\\') i++
    else if (char === '[') isInClass = true
    else if (char === ']') isInClass = false
    else if (char === '\n') return i
    else if (char === '/' && !isInClass) return i + 1
  }
  return source.length
}
