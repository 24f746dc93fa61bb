import { amountOf } from '../amount.ts'

type Revive = (name: string, value: unknown, context?: { source?: string }) => unknown
const parse = JSON.parse as (text: string, revive: Revive) => unknown

/** JSON, with numbers that a double cannot hold kept as they were written (see ExactNumber). */
export function parseJson(text: string): unknown {
  return parse(text, (_name, value, context) =>
    typeof value === 'number' && context?.source !== undefined ? amountOf(context.source) : value,
  )
}
