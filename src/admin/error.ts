import { quote } from '../domain/tenants/credentials.ts'
import type { ValidationError } from '../domain/validation-error.ts'

/** `name` includes its kind: user:42. */
export type PersonChoice = { name: string; profile_id: string }

/** Why a change was rejected, for the user who requested it. The caller decides how to show it. */
export class AdminError extends Error {
  override name = 'AdminError'
  readonly kind: 'not_found' | 'conflict' | 'forbidden' | 'invalid'
  readonly code: string
  readonly errors: ValidationError[]
  /** For an identifier that matches several people: each of them. */
  readonly choices: PersonChoice[] | undefined

  constructor(
    kind: AdminError['kind'],
    code: string,
    message: string,
    errors: ValidationError[] = [],
    choices?: PersonChoice[],
  ) {
    super(message)
    this.kind = kind
    this.code = code
    this.errors = errors
    this.choices = choices
  }
}

export function notFound(what: 'tenant' | 'key' | 'source' | 'destination' | 'user', name: string): AdminError {
  return new AdminError('not_found', `${what}_not_found`, `No such ${what}: ${quote(name)}.`)
}

/** Does nothing without errors. */
export function throwIfInvalid(errors: ValidationError[]): void {
  if (errors.length > 0) throw invalidValues('invalid_request', errors)
}

export function invalidValues(code: string, errors: ValidationError[]): AdminError {
  const label = errors.length === 1 ? 'Invalid value' : `${errors.length} invalid values`
  return new AdminError('invalid', code, `${label}:`, errors)
}

/** A command for this database. Without --data it would use another database, or create one. */
export function kontorCommand({ dataDir }: { dataDir: string | null }, command: string): string {
  const data = dataDir === null ? '' : ` --data '${dataDir.replaceAll("'", String.raw`'\''`)}'`
  return `kontor ${command}${data}`
}

/** The reason in an error of the operating system: "no space left on device" of "ENOSPC: no space left on device, write". */
export function fileErrorReason({ message }: Error): string {
  return /^[A-Z]+: (.*?), \w+/.exec(message)?.[1] ?? message
}

/** For `catch`: a file that cannot be used, with the reason of the operating system. `hint`: what to do about it. */
export function fileError(what: 'written' | 'read', path: string, hint?: string) {
  return (error: Error): never => {
    const message = `${path} cannot be ${what}: ${fileErrorReason(error)}.`
    throw new AdminError('conflict', 'file_unusable', hint ? `${message}\n${hint}` : message)
  }
}
