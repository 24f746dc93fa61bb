/** Reproducible random numbers. */
export type Random = {
  /** at least `from`, less than `to` */
  between(from: number, to: number): number
  integer(from: number, to: number): number
  chance(probability: number): boolean
  pick<T>(list: readonly T[]): T
  shuffled<T>(list: readonly T[]): T[]
  /** A separate series, independent of how often other parts draw. */
  fork(name: string): Random
}

export function randomFrom(seed: string): Random {
  let state = hashText(seed)
  // mulberry32
  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (from: number, to: number) => from + next() * (to - from)
  const integer = (from: number, to: number) => Math.floor(between(from, to + 1))
  return {
    between,
    integer,
    chance: probability => next() < probability,
    pick: list => list[integer(0, list.length - 1)]!,
    shuffled(list) {
      const mixed = [...list]
      for (let i = mixed.length - 1; i > 0; i--) {
        const j = integer(0, i)
        ;[mixed[i], mixed[j]] = [mixed[j]!, mixed[i]!]
      }
      return mixed
    },
    fork: name => randomFrom(`${seed}/${name}`),
  }
}

/** FNV-1a */
function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash | 0
}
