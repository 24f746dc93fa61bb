import { isNetwork, MAX_NETWORKS, NETWORKS } from '../domain/tenants/addresses.ts'
import { faultsOfLimits, type KeyLimits } from '../domain/tenants/key-limits.ts'
import { KEY_KINDS, type KeyKind, SCOPES, type Scope } from '../domain/tenants/keys.ts'
import { ROLES, type Role } from '../domain/tenants/roles.ts'
import { parseTimestamp } from '../domain/time.ts'
import type { ValidationError } from '../domain/validation-error.ts'

/** What a key is made from, unchecked. */
export type NewKey = {
  /** Of an admin key: the only one that it sees. */
  tenant?: string | null | undefined
  kind: string
  /** Default: all of them for a private key; the other kinds have none. */
  scopes?: string[] | undefined
  /** Of a tracking key: it stays on servers, and may therefore alias and merge people. */
  server?: boolean | undefined
  /** Of an admin key; default: admin. */
  role?: string | undefined
  expires_at?: string | null | undefined
  /** Of a private or admin key: addresses and networks that it is accepted from. Default: from everywhere. */
  allowed_addresses?: string[] | undefined
} & KeyLimitsInput

/** Of a tracking key. What is left out has no limit, or stays as it is. */
export type KeyLimitsInput = { [Name in keyof KeyLimits]?: KeyLimits[Name] | undefined }

const LIMITS = ['origins', 'event_types', 'rate_limit'] as const

export function faultsOfKeyLimits(kind: string, input: KeyLimitsInput): ValidationError[] {
  if (kind === 'tracking') return faultsOfLimits(given(input))
  const named = LIMITS.filter(name => input[name] !== undefined)
  return named.map(name => ({ pointer: `/${name}`, message: 'must be left out: only a tracking key has it' }))
}

/** The limits that are named. */
export function given(input: KeyLimitsInput): Partial<KeyLimits> {
  return Object.fromEntries(LIMITS.flatMap(name => (input[name] === undefined ? [] : [[name, input[name]]])))
}

/** Every fault at once. */
export function faultsOfNewKey(input: NewKey, now: Date): ValidationError[] {
  const faults: ValidationError[] = []
  const fault = (pointer: string, message: string) => faults.push({ pointer, message })
  if (!KEY_KINDS.includes(input.kind as KeyKind)) fault('/kind', `must be one of ${KEY_KINDS.join(', ')}`)
  if (input.kind !== 'admin' && !input.tenant) fault('/tenant', 'is required: the id or the name of a tenant')
  if (input.scopes && input.kind !== 'private' && KEY_KINDS.includes(input.kind as KeyKind))
    fault('/scopes', `must be left out: a key of kind ${input.kind} has no scopes`)
  else if (input.scopes?.length === 0) fault('/scopes', 'must name at least one scope')
  for (const [index, scope] of (input.scopes ?? []).entries())
    if (!SCOPES.includes(scope as Scope))
      fault(
        `/scopes/${index}`,
        `${JSON.stringify(scope)} is not a scope; the scopes are ${SCOPES.join(', ')}`,
      )
  if (input.server && input.kind !== 'tracking')
    fault('/server', 'must be left out: only a tracking key can be a server key')
  if (input.role !== undefined && input.kind !== 'admin')
    fault('/role', 'must be left out: only admin keys have a role')
  else if (input.role !== undefined && !ROLES.includes(input.role as Role))
    fault('/role', `must be one of ${ROLES.join(', ')}`)
  const networks = input.allowed_addresses ?? []
  if (networks.length > 0 && input.kind === 'tracking')
    fault('/allowed_addresses', 'must be left out: a tracking key is used by browsers everywhere')
  else if (networks.length > MAX_NETWORKS || !networks.every(isNetwork))
    fault('/allowed_addresses', `must be ${NETWORKS}`)
  faults.push(...faultsOfKeyLimits(input.kind, input))
  if (input.expires_at) {
    const at = parseTimestamp(input.expires_at)
    if (at === null) fault('/expires_at', 'must be an ISO 8601 date-time, for example 2030-01-31T00:00:00Z')
    else if (at <= now) fault('/expires_at', 'must be in the future')
  }
  return faults
}
