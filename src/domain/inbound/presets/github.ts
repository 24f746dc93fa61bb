import { type Preset, textOf, wholeBody } from '../preset.ts'
import { hexBytes, verifyPlain } from '../signatures.ts'
import { githubContradiction } from '../unsigned-names.ts'

export const github: Preset = {
  name: 'github',
  keepHeaders: ['x-github-event', 'x-github-delivery'],
  verify(request) {
    const header = request.headers['x-hub-signature-256']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    if (!header.startsWith('sha256=')) return { ok: false, code: 'signature_invalid' }
    return verifyPlain(request, header.slice(7), hexBytes, 'github')
  },
  eventType(headers, body) {
    const event = textOf(headers['x-github-event'])
    const action = textOf(body.action)
    return event && action ? `${event}.${action}` : event
  },
  eventId: headers => textOf(headers['x-github-delivery']),
  contradiction: (headers, body) => githubContradiction(textOf(headers['x-github-event']) ?? '', body),
  subject: wholeBody,
}
