/** Something of one tenant, by the id it has at its source. */
export type ObjectKey = { tenantId: number; id: string }

export function keyColumns(keys: ObjectKey[]): [number[], string[]] {
  return [keys.map(key => key.tenantId), keys.map(key => key.id)]
}

/** In the one order in which rows are locked. */
export function sortedKeys<Key extends ObjectKey>(keys: Key[]): Key[] {
  return [...keys].sort((a, b) => a.tenantId - b.tenantId || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
}

export function keyText(key: ObjectKey): string {
  return `${key.tenantId} ${key.id}`
}

export function distinctKeys<Key extends ObjectKey>(keys: Key[]): Key[] {
  return [...new Map(keys.map(key => [keyText(key), key])).values()]
}

export function timeText(at: number): string {
  return new Date(at).toISOString()
}

/** The end of a row: null is until further notice. */
export function endText(at: number | null): string {
  return at === null ? 'infinity' : timeText(at)
}

/** What pg reads from a timestamptz column; an infinite one is null. */
export function instantOf(value: Date | number): number | null {
  return value instanceof Date ? value.getTime() : null
}
