import type { ValidationError } from '../domain/validation-error.ts'

/** `name` says its kind: user:42. */
export type PersonChoice = { name: string; profile_id: string }

/** Why a change was not made, in words for the person who requested it. The caller decides how to show it. */
export class AdminError extends Error {
  override name = 'AdminError'
  readonly kind: 'not_found' | 'conflict' | 'forbidden' | 'invalid'
  readonly code: string
  readonly faults: ValidationError[]
  /** Of a name that several people go by: each of them. */
  readonly choices: PersonChoice[] | undefined

  constructor(
    kind: AdminError['kind'],
    code: string,
    message: string,
    faults: ValidationError[] = [],
    choices?: PersonChoice[],
  ) {
    super(message)
    this.kind = kind
    this.code = code
    this.faults = faults
    this.choices = choices
  }
}

export function notFound(what: 'tenant' | 'key' | 'source' | 'destination', name: string): AdminError {
  return new AdminError('not_found', `${what}_not_found`, `There is no ${what} ${JSON.stringify(name)}.`)
}

/** Does nothing when there are no faults. */
export function throwIfInvalid(faults: ValidationError[]): void {
  if (faults.length === 0) return
  const count = faults.length === 1 ? 'One value is' : `${faults.length} values are`
  throw new AdminError('invalid', 'invalid_request', `${count} not valid.`, faults)
}

/** A command that reaches this very database: without --data it would be another one, or a new one. */
export function kontorCommand({ dataDir }: { dataDir: string | null }, command: string): string {
  const data = dataDir === null ? '' : ` --data '${dataDir.replaceAll("'", String.raw`'\''`)}'`
  return `kontor ${command}${data}`
}
