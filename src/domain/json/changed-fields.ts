import { isObject } from './json.ts'

const MAX_DEPTH = 3
const MAX_FIELDS = 50
const MAX_NAME = 100

/** Names of the fields in which two JSON texts differ (`data.amount`), without a value; null where one is no object. */
export function changedFields(before: string, after: string): string[] | null {
  const [a, b] = [parsed(before), parsed(after)]
  if (!isObject(a) || !isObject(b)) return null
  return differences(a, b, 1).slice(0, MAX_FIELDS)
}

function differences(a: Record<string, unknown>, b: Record<string, unknown>, depth: number): string[] {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return names.flatMap(name => {
    const [was, is] = [a[name], b[name]]
    const shown = name.slice(0, MAX_NAME)
    if (isObject(was) && isObject(is) && depth < MAX_DEPTH)
      return differences(was, is, depth + 1).map(inner => `${shown}.${inner}`)
    return JSON.stringify(was) === JSON.stringify(is) ? [] : [shown]
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
