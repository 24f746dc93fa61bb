// A separate file without dependencies: the image packs the tarball with scripts/pack.ts before any package is installed.
import { stripTypeScriptTypes } from 'node:module'

/**
 * Replaces types with spaces, so that lines and columns stay. `import type` is removed, so no server file is requested.
 * Node prints a warning that the function is experimental; the version of Node is pinned, and Node runs this server with
 * the same function.
 */
export function stripTypes(text: string): string {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return stripTypeScriptTypes(text)
  } finally {
    process.emitWarning = emitWarning
  }
}
