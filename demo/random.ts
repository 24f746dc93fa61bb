/** Repeatable random numbers: the same path gives the same sequence, independent of all other paths. */
export type Random = {
  /** From 0 up to, but not including, 1. */
  next(): number
  /** A whole number from `least` to `most`, both included. */
  int(least: number, most: number): number
  chance(probability: number): boolean
  pick<T>(list: readonly T[]): T
  /** Entries as [value, weight]. */
  weighted<T>(list: readonly (readonly [T, number])[]): T
}

/** Each purpose has its own generator, so that a change of one does not affect the others. */
export function randomFor(...path: (string | number)[]): Random {
  let state = hashText(path.join('/'))
  function next(): number {
    state = (state + 0x9e3779b9) | 0
    return scrambled(state) / 2 ** 32
  }
  const int = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    int,
    chance: probability => next() < probability,
    pick: list => list[int(0, list.length - 1)]!,
    weighted(list) {
      let rest = next() * list.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [value, weight] of list) {
        rest -= weight
        if (rest < 0) return value
      }
      return list.at(-1)![0]
    },
  }
}

/** Every bit of the input changes about half of the bits of the result. */
function scrambled(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = scrambled(Math.imul(hash ^ text.charCodeAt(i), 0x01000193))
  return hash
}
