import { problems } from './problems.ts'

/** A place in a list, opaque to callers. */
export function encodeCursor(parts: string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

export function decodeCursor(cursor: string, parts: number): string[] {
  try {
    const decoded: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (
      Array.isArray(decoded) &&
      decoded.length === parts &&
      decoded.every(part => typeof part === 'string')
    ) {
      return decoded
    }
  } catch {
    // not one of ours
  }
  throw problems.invalid([{ pointer: '/cursor', message: 'is not a cursor of this list' }])
}
