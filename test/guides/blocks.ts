/** A fenced block of a Markdown file. `notes` is what follows the language: `file=NAME`, `answer` or `not run: REASON`. */
export type Block = { language: string; notes: string; text: string; line: number }

export function parseBlocks(markdown: string): Block[] {
  const blocks: Block[] = []
  let open: Block | null = null
  for (const [index, line] of markdown.split('\n').entries()) {
    const [, language, notes] = /^```(\S*) *(.*)$/.exec(line) ?? []
    if (language === undefined) {
      if (open) open.text += `${line}\n`
    } else if (open) {
      blocks.push(open)
      open = null
    } else open = { language, notes: notes!, text: '', line: index + 2 }
  }
  if (open) throw new Error(`the block that begins in line ${open.line - 1} has no end`)
  return blocks
}

/** The reason in the block's `not run` note. */
export function reasonNotToRun({ notes }: Block): string | null {
  return /^not run: (.+)$/.exec(notes)?.[1] ?? null
}

export function readFileName({ notes }: Block): string | null {
  return /^file=(\S+)$/.exec(notes)?.[1] ?? null
}

/** Commands that are entered together, with the expected output from the comments below. */
export type Command = { text: string; line: number; expected: string[] }

export function parseCommands({ text, line: first }: Block): Command[] {
  const commands: Command[] = []
  let pending = ''
  let hereDocument: string | null = null
  for (const [index, line] of text.split('\n').entries()) {
    if (hereDocument === null && pending === '' && /^\s*#/.test(line)) {
      // A comment that shows output; other comments explain.
      if (/^# [{[✓→]/.test(line)) commands.at(-1)?.expected.push(line.slice(2))
      continue
    }
    if (pending === '' && line.trim() === '') continue
    pending += `${line}\n`
    hereDocument =
      hereDocument === null ? (/<<-?'?(\w+)'?/.exec(line)?.[1] ?? null) : line === hereDocument ? null : hereDocument
    if (hereDocument !== null || isUnfinished(pending)) continue
    const lines = pending.split('\n').length - 1
    commands.push({ text: pending, line: first + index - lines + 1, expected: [] })
    pending = ''
  }
  if (pending.trim() !== '') throw new Error(`line ${first}: a command has no end: ${pending}`)
  return commands
}

/** Inside quotes or braces, or ends with a backslash. */
function isUnfinished(text: string): boolean {
  if (/\\\n$/.test(text)) return true
  let quote = ''
  let depth = 0
  for (const [index, character] of [...text].entries()) {
    if (quote !== "'" && text[index - 1] === '\\') continue
    if (quote === '' && (character === "'" || character === '"')) quote = character
    else if (quote === character) quote = ''
    else if (quote === '' && character === '{') depth++
    else if (quote === '' && character === '}') depth--
    else if (quote === '' && character === '#' && /\s/.test(text[index - 1] ?? ' ')) return false
  }
  return quote !== '' || depth > 0
}
