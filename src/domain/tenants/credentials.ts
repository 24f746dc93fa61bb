// Kontor, Stripe, Shopify, GitHub, Slack, SendGrid, Google, Amazon, and JWTs.
const BY_PREFIX =
  /(?<![A-Za-z\d])(private-|trk_|adm_|tok_|whsec_|[rs]k_(?:live|test)_|rk_|shp(?:at|ca|pa|ss)_|gh[oprsu]_|github_pat_|xox[abeprs]-|SG\.|AIza|A(?:KI|SI)A|eyJ)[\w+/=.-]+/g
// Shorter values are ordinary words, such as "basic plan".
const BY_SCHEME = /\b(bearer|basic)(\s+|%20|\+)[\w+/=.~-]{8,}/gi
// "password": "…", also in JSON inside JSON, and password=…. An unterminated string is removed up to the end.
const NAME = String.raw`[\w-]{0,40}(?:passw(?:or)?d|passphrase|passcode|secret|api[_-]?key|private[_-]?key|access[_-]?token|refresh[_-]?token|auth[_-]?token|authorization|cvc2?|cvv2?)`
const BY_JSON_NAME = new RegExp(
  String.raw`(\\{0,8}"${NAME}\\{0,8}"\s*:\s*)(?:"(?:[^"\\]|\\.)*(?:"|$)|\\+"[^"\\]*(?:\\+"|$)|[^\s",{}[\]]+)`,
  'gi',
)
const BY_FORM_NAME = new RegExp(String.raw`((?:^|[&?\s"])${NAME}=)[^&\s"]+`, 'gi')
const CARD = /(?<!\d)[2-6]\d(?:[ -]?\d){11,17}(?!\d)/g

/** Removes everything that looks like a secret, because samples of requests are shown to many users. */
export function withoutCredentials(text: string): string {
  return text
    .replace(BY_JSON_NAME, '$1"…"')
    .replace(BY_FORM_NAME, '$1…')
    .replace(BY_SCHEME, '$1$2…')
    .replace(BY_PREFIX, '$1…')
    .replace(CARD, digits => (passesLuhn(digits.replace(/\D/g, '')) ? '…' : digits))
}

/** How long a replaced credential stays valid, so that its users can switch. */
export const DEFAULT_OVERLAP_HOURS = 24

const MAX_QUOTED = 100
// Also characters that change the direction of the text after them.
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g

/** What a caller sent, for the text of an error: short, visible and without secrets. */
export function quote(text: string): string {
  const shown = text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text
  const visible = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(withoutCredentials(shown.toWellFormed())).replace(INVISIBLE, visible)
}

/** True for card numbers, and for one in ten other numbers. */
function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    const doubled = i % 2 === 0 ? digit : 2 * digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}
