import { h, say } from '../dom.js'

const SHOWN_MS = 2_000

/** Text to take along, with a button for it. */
export function copyable(text, label = 'Copy') {
  const code = h('code', {}, text)
  const button = h('button', { type: 'button', class: 'quiet', 'aria-label': label }, 'Copy')
  button.addEventListener('click', async () => {
    const isCopied = await copy(text, code)
    button.textContent = isCopied ? 'Copied' : 'Selected'
    say(isCopied ? 'Copied' : 'Selected: copy it with the keyboard')
    setTimeout(() => {
      button.textContent = 'Copy'
    }, SHOWN_MS)
  })
  return h('div', { class: 'copyable' }, h('pre', { tabindex: 0 }, code), button)
}

/** Browsers lend the clipboard to secure pages only; elsewhere the text is selected. */
async function copy(text, element) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    getSelection().selectAllChildren(element)
    return false
  }
}

/** A curl line that works when pasted into a shell. */
export function curlLine(path, { key, headers = {}, body }) {
  const lines = [`curl ${location.origin}${path}`]
  if (key) lines.push(`-H ${quoted(`Authorization: Bearer ${key}`)}`)
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (body !== undefined) {
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`)
  }
  return lines.join(' \\\n  ')
}

/** For a shell; what contains a variable is left open to it. */
export function quoted(text) {
  return /\$[A-Z_]+/.test(text) && !text.includes('"') ? `"${text}"` : `'${text.replaceAll("'", `'\\''`)}'`
}
