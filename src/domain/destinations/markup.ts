/** A message as people read it. `chat`: plain text for a chat. */
export type Readable = { subject: string; text: string; html: string; chat: string }

type Part = string | null

export function lines(parts: Part[]): string {
  return `${parts.filter(part => part !== null).join('\n')}\n`
}

const STYLE = 'font-family:system-ui,sans-serif;font-size:14px;line-height:1.5;color:#1a1a1a;max-width:640px'

/** `parts`: HTML. */
export function htmlPage(parts: Part[]): string {
  const body = parts.filter(part => part !== null).join('\n')
  return `<!doctype html>\n<html><body><div style="${STYLE}">\n${body}\n</div></body></html>\n`
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character]!)
}

/** Slack reads <…> as a link or a mention, for example <!channel>. */
export function escapeSlack(text: string): string {
  return text.replace(/[&<>]/g, character => ENTITIES[character]!)
}

/** Names come from users and providers. A line break in one must not start a new line or a new header. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()
}
