import type { Output } from './output.ts'

/** `value`: the flag takes one, and this is what it is called in the help; without it the flag is on or off. */
export type Flag = { value?: string; meaning: string; required?: true }

type Flags = Record<string, Flag>
/** What each argument means, by the name it has in the help. */
type Arguments = Record<string, string>

type FlagValues<F extends Flags> = {
  [K in keyof F]: F[K] extends { value: string }
    ? F[K] extends { required: true }
      ? string
      : string | undefined
    : boolean
}

type Definition<A extends Arguments, F extends Flags> = {
  /** One word, or two: `source create`. */
  name: string
  summary: string
  arguments?: A
  flags?: F
  /** More to know, a paragraph each. */
  notes?: string[]
  examples: string[]
  /** Returns the exit code; nothing is 0. */
  run(input: {
    args: { [K in keyof A]: string }
    flags: FlagValues<F>
    out: Output
  }): Promise<number | undefined>
}

export type Command = {
  name: string
  summary: string
  arguments: Arguments
  flags: Flags
  notes: string[]
  examples: string[]
  run(input: {
    args: Record<string, string>
    flags: Record<string, string | boolean | undefined>
    out: Output
  }): Promise<number | undefined>
}

/** A command is one value of this kind, in a file of its own or of its group, and one entry in table.ts. */
export function defineCommand<
  const A extends Arguments = Record<never, string>,
  const F extends Flags = Record<never, Flag>,
>(definition: Definition<A, F>): Command {
  return { arguments: {}, flags: {}, notes: [], ...definition } as unknown as Command
}

/** The command was not used as it should be: exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}
