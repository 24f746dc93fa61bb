import { stripTypeScriptTypes } from 'node:module'

/**
 * Types become blanks, so that line and column stay. Node calls the function experimental and would say so at every
 * start; the version of Node is pinned, and what runs this server is the same function.
 */
export function withoutTypes(text: string): string {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(text)
  } finally {
    process.emitWarning = emitWarning
  }
}
