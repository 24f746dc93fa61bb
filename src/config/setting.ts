import type { Read } from './values.ts'

export type Setting<T> = {
  /** The environment variable. */
  name: string
  /** The command line's name for it, where it has one. */
  flag?: string
  /** As text, read like a given value; null: no default. */
  default: string | null
  meaning: string
  /** Completes "must be …", with an example that can be copied. */
  expects: string
  read: Read<T>
  /** What may be shown of the value; absent: all of it. */
  show?: (text: string) => string
}

export const setting = <T>(definition: Setting<T>): Setting<T> => definition
export const withoutDefault = <T>(
  definition: Omit<Setting<T>, 'default'>,
): Setting<T> & { default: null } => ({
  ...definition,
  default: null,
})
