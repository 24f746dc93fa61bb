import { InvalidArgumentError } from '@commander-js/extra-typings'

/** A header as it is typed, as its name and its value. */
export function headerOf(text: string, example: string): [name: string, value: string] {
  const [, name, value] = /^([^\s:]+):\s*(.*)$/.exec(text) ?? []
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError(`It must be name:value, for example ${JSON.stringify(example)}.`)
  return [name, value]
}
