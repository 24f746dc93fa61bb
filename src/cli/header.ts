import { InvalidArgumentError } from '@commander-js/extra-typings'

/** Parses a header given as `name: value`. */
export function headerOf(text: string, example: string): [name: string, value: string] {
  const [, name, value] = /^([^\s:]+):\s*(.*)$/.exec(text) ?? []
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError(`Expected name:value, for example ${JSON.stringify(example)}.`)
  return [name, value]
}
