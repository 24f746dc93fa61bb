import { domainToUnicode } from 'node:url'

/** Nearly every address: but for its case, nothing about it can be written in another way. */
const PLAIN = /^[\w.+%-]+@[a-z\d-]+(?:\.[a-z\d-]+)+$/

// With the name of a person before it; an address alone has 254.
const MAX_LENGTH = 1_000

/**
 * An address in the one form in which it is kept and compared, whatever form it came in: `Ada <ADA@Example.org>`,
 * `mailto:ada%40example.org`, `ada@example.org.`, characters of full width, invisible ones, a domain in punycode.
 * What is no address comes back as some text or other.
 */
export function addressIn(text: string): string {
  const lower = text.trim().toLowerCase()
  if ((PLAIN.test(lower) && !lower.includes('xn--')) || lower.length > MAX_LENGTH) return lower
  const visible = lower.normalize('NFKC').replace(/[\p{Cf}\p{Cc}]/gu, '')
  const bare = withoutMailto(withoutName(visible)).replace(/^["'\s]+|["'\s.,;]+$/g, '')
  const at = bare.lastIndexOf('@')
  return at < 0 ? bare : `${bare.slice(0, at)}@${domainIn(bare.slice(at + 1))}`.normalize('NFKC')
}

/** `Ada <a@b>` and `a@b (Ada)`: the address alone. */
function withoutName(text: string): string {
  const between = /<([^<>]+)>[^<>@]*$/.exec(text)?.[1]
  return (between ?? text).replace(/\([^()@]*\)\s*$/, '').trim()
}

function withoutMailto(text: string): string {
  if (!text.startsWith('mailto:')) return text
  const path = text.slice('mailto:'.length).split('?', 1)[0]!
  try {
    return decodeURIComponent(path).toLowerCase()
  } catch {
    return path
  }
}

/** As its owner writes it. Only where that differs: a number would be read as an IP address. */
function domainIn(text: string): string {
  const isPlain = /^[\w.-]*$/.test(text) && !text.includes('xn--')
  return isPlain ? text : domainToUnicode(text) || text
}
