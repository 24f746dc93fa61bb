import { isObject, type JsonObject } from '../../json/json.ts'
import { type Preset, readString, wholeBody } from '../preset.ts'
import { hexBytes, verifyPlain } from '../signatures.ts'

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
    const event = readString(headers['x-github-event'])
    const action = readString(body.action)
    return event && action ? `${event}.${action}` : event
  },
  eventId: headers => readString(headers['x-github-delivery']),
  contradiction: (headers, body) => findContradiction(readString(headers['x-github-event']) ?? '', body),
  subject: wholeBody,
}

/** By event: a field that its body has, and fields that only bodies of other events have. */
const GITHUB_EVENTS: Record<string, { own: string; never?: string[] }> = {
  check_run: { own: 'check_run' },
  check_suite: { own: 'check_suite' },
  create: { own: 'master_branch' },
  delete: { own: 'ref_type', never: ['master_branch'] },
  deployment: { own: 'deployment', never: ['deployment_status'] },
  deployment_status: { own: 'deployment_status' },
  discussion: { own: 'discussion' },
  fork: { own: 'forkee' },
  issue_comment: { own: 'comment', never: ['pull_request', 'discussion'] },
  issues: { own: 'issue', never: ['comment'] },
  ping: { own: 'zen' },
  pull_request: { own: 'pull_request', never: ['comment', 'review', 'thread'] },
  pull_request_review: { own: 'review' },
  push: { own: 'commits' },
  release: { own: 'release' },
  workflow_job: { own: 'workflow_job' },
  workflow_run: { own: 'workflow_run' },
}
const GITHUB_FIELDS = [...new Set(Object.values(GITHUB_EVENTS).map(({ own }) => own))]

/** Why the body cannot belong to its event; null: it can. See `Preset.contradiction`. */
function findContradiction(event: string, body: JsonObject): string | null {
  const known = Object.hasOwn(GITHUB_EVENTS, event) ? GITHUB_EVENTS[event]! : null
  if (known === null) return null
  const isPresent = (name: string) =>
    Array.isArray(body[name]) || isObject(body[name]) || typeof body[name] === 'string'
  const foreign = isPresent(known.own) ? known.never?.find(isPresent) : GITHUB_FIELDS.find(isPresent)
  if (foreign === undefined) return null
  return `the event ${event} does not match the body, which contains ${foreign}; event names are not signed`
}
