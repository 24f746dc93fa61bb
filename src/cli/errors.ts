import { EmbeddedError } from '../../embedded-postgres/cluster.ts'
import { AdminError } from '../admin/error.ts'
import { ConfigError } from '../config/config.ts'
import { FileError } from '../import/rows.ts'
import { NotSent } from '../import/run.ts'
import { LogRefused, LogUnavailable } from '../log/log.ts'
import { isUnavailable } from '../postgres/database.ts'
import { SchemaError } from '../postgres/migrate.ts'
import { Stopped } from './stop.ts'

/** Wrong arguments or options. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/**
 * The message and exit code for an expected error; null for an unexpected one. `toOption`: how the user of the command calls a
 * field of the admin API.
 */
export function explain(
  error: unknown,
  toOption: (field: string) => string,
): { words: string; exitCode: 1 | 2 } | null {
  if (error instanceof UsageError) return { words: error.message, exitCode: 2 }
  if (error instanceof ConfigError)
    return {
      words: [error.message, ...error.errors.map(each => `  - ${each}`)].join('\n'),
      exitCode: error.errors.every(isAboutOption) ? 2 : 1,
    }
  if (error instanceof AdminError) {
    const errors = error.errors.map(({ pointer, message }) => `  - ${toOption(pointer.slice(1))} ${message}`)
    return { words: [explainNotFound(error), ...errors].join('\n'), exitCode: error.kind === 'invalid' ? 2 : 1 }
  }
  if (error instanceof EmbeddedError) return { words: `${error.message}\n${DATABASE_HINT}`, exitCode: 1 }
  if (error instanceof Stopped) return { words: error.message, exitCode: 1 }
  if (error instanceof FileError) return { words: error.message, exitCode: 1 }
  if (error instanceof NotSent) return { words: `${error.message}\n${RETRY_HINT}`, exitCode: 1 }
  if (error instanceof LogRefused || error instanceof LogUnavailable) return { words: error.message, exitCode: 1 }
  if (error instanceof SchemaError) return { words: error.message, exitCode: 1 }
  const words = explainSystemError(error as SystemError)
  return words === null ? null : { words, exitCode: 1 }
}

/** A setting may be given as an option or as a variable. Its errors begin with the name that was used. */
const isAboutOption = (error: string) => error.startsWith('--')

const HINTS: Record<string, string> = {
  tenant_not_found: 'Run `kontor tenant list` to see all tenants.',
  key_not_found: 'Use the id (key_…) that `kontor key list` shows.',
  source_not_found: 'Use the id (src_…) that `kontor source list` shows.',
  destination_not_found: 'Use the id (dst_…) that `kontor destination list` shows.',
  user_not_found: 'Run `kontor user list` to see all users.',
  dead_letter_not_found: 'Use the id that `kontor dead-letters list` shows.',
}

function explainNotFound({ code, message }: AdminError): string {
  const hint = message.startsWith('No such ') ? HINTS[code] : undefined
  return hint === undefined ? message : `${message} ${hint}`
}

export const RETRY_HINT = 'Accepted rows are stored. Run the same command again to continue.'
const DATABASE_HINT =
  '(To use another data directory, set --data or KONTOR_DATA_DIR. To use your own PostgreSQL 15 or newer, set DATABASE_URL.)'

const HOST_SETTINGS = '--host or KONTOR_HOST (KONTOR_OPS_HOST for the operations port)'
const PORT_SETTINGS = '--port or KONTOR_PORT (KONTOR_OPS_PORT for the operations port)'

type SystemError = NodeJS.ErrnoException & { address?: string; port?: number }

const LISTEN_ERRORS: Record<string, string> = {
  EADDRNOTAVAIL: 'it does not have this address',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be resolved, because the DNS server does not respond',
}

function explainSystemError(error: SystemError): string | null {
  const { code, syscall, address, port, message } = error
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${address} is in use by another program. Choose another port with ${PORT_SETTINGS}.`
  if (code === 'EACCES' && syscall === 'listen')
    return `This user is not allowed to listen on port ${port}. Choose a port above 1023 with ${PORT_SETTINGS}.`
  if (syscall === 'listen')
    return `This machine cannot listen on ${address}: ${LISTEN_ERRORS[code ?? ''] ?? message}. Choose another address with ${HOST_SETTINGS}.`
  // 28…: authentication failed; 42501: insufficient privilege
  if (/^(28...|42501)$/.test(code ?? ''))
    return `PostgreSQL denied access: ${message}. Check the user in DATABASE_URL, its password and its privileges.`
  const isFile = code === 'ENOENT' && syscall !== 'connect'
  return isUnavailable(error) && !isFile
    ? `PostgreSQL is unreachable: ${message}. Check that PostgreSQL is running, and check DATABASE_URL if it is set.`
    : null
}
