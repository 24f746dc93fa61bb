/** A seeded random generator. */
export type Chance = {
  /** From 0 up to, not including, 1. */
  next(): number
  /** A whole number, both bounds included. */
  between(low: number, high: number): number
  /** Whether something of this probability happens. */
  happens(probability: number): boolean
  pick<T>(values: readonly T[]): T
  /** One of the names, by weight. */
  weighted<Name extends string>(weights: Partial<Record<Name, number>>): Name
}

export function chance(seed: string | number): Chance {
  let state = hashOf(String(seed))
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    between,
    happens: probability => next() < probability,
    pick: values => values[between(0, values.length - 1)]!,
    weighted(weights) {
      const entries = Object.entries(weights) as [never, number][]
      let rest = next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [name, weight] of entries) {
        rest -= weight
        if (rest < 0) return name
      }
      return entries.at(-1)![0]
    },
  }
}

/** The same order for the same seed. */
export function shuffle<T>(values: readonly T[], seed: string | number): T[] {
  const result = [...values]
  const { between } = chance(seed)
  for (let i = result.length - 1; i > 0; i--) {
    const j = between(0, i)
    ;[result[i], result[j]] = [result[j]!, result[i]!]
  }
  return result
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (const character of text) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193)
  return hash | 0
}
