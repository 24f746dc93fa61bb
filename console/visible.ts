/**
 * Signs that nobody sees, and that change what is seen around them: controls, overrides of the direction of writing,
 * marks of zero width. What joins letters (U+200C, U+200D) stays, languages and emoji need it; so do blanks and ends of lines.
 */
const UNSEEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g
const IS_UNSEEN = new RegExp(UNSEEN.source)

/** A text of strangers, with what is not seen in it written out: an order 10‹U+202E›123 is not 321 10. */
export function visible(text: string): string {
  return IS_UNSEEN.test(text) ? text.replace(UNSEEN, written) : text
}

function written(sign: string): string {
  return `‹U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}›`
}
