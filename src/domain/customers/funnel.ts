/** Events of a type, or page views whose path matches one of the patterns with `*`. */
export type FunnelStep = { eventType: string } | { pages: string[] }

/** A pattern as typed and as browsers send it: `/über-uns` is `/%C3%BCber-uns` in their URLs. */
export function pageSpellings(pattern: string): string[] {
  let plain = pattern
  try {
    plain = decodeURI(pattern)
  } catch {
    // A percent sign that encodes nothing.
  }
  return [...new Set([pattern, plain, encodeURI(plain)])]
}

/** By the user agent of an event (`DEVICE` in store/events/days.ts). `other`: it says nothing about the device, or there is none. */
export const DEVICES = ['phone', 'tablet', 'computer', 'other'] as const
export type Device = (typeof DEVICES)[number]

/** What a funnel knows about some events: the types that they count as and, of a page view, the path, else ''. */
export type EventKind = { types: readonly string[]; path: string; device: Device; isSale: boolean }

/** Events ordered by time and receipt, in columns: 5 bytes with the node, 4 with the milliseconds since `start`, 3 with the kind. */
export type EventColumns = {
  start: number
  nodes: Buffer
  times: Buffer
  kinds: Buffer
  /** By kind, a bit for each step that its events are. */
  stepsOfKind: Uint8Array
}

export type FunnelTerms = {
  steps: readonly FunnelStep[]
  /** The bounds of the first step. Later steps may follow until `withinMs` after it. */
  since: number
  until: number
  withinMs: number
  pageTypes: ReadonlySet<string>
  /** The device of the first step. Null: any. Later steps may happen elsewhere: many people buy on another device. */
  device: Device | null
}

/** Events that are steps, in order. `steps` has a bit for each step that an event is. In columns, because there may be a million. */
export type StepEvents = { length: number; nodes: Float64Array; times: Float64Array; steps: Uint8Array }

/** Finds the steps among the events. */
export function findSteps({ start, nodes, times, kinds, stepsOfKind }: EventColumns, terms: FunnelTerms): StepEvents {
  const count = stepsOfKind.some(steps => steps !== 0) ? times.length / 4 : 0
  const found = {
    length: 0,
    nodes: new Float64Array(count),
    times: new Float64Array(count),
    steps: new Uint8Array(count),
  }
  const [first, last] = [terms.since, terms.until + terms.withinMs]
  for (let i = 0; i < count; i++) {
    const kind = i * 3
    const steps = stepsOfKind[(kinds[kind]! << 16) | (kinds[kind + 1]! << 8) | kinds[kind + 2]!]!
    if (steps === 0) continue
    const at = start + readUint32(times, i * 4)
    if (at < first || at > last) continue
    found.nodes[found.length] = nodes[i * 5]! * 2 ** 32 + readUint32(nodes, i * 5 + 1)
    found.times[found.length] = at
    found.steps[found.length++] = steps
  }
  return found
}

// Buffer.readUIntBE takes five times as long.
function readUint32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
}

/** A bit for each step that events of this kind are. */
export function matchSteps(
  { types, path, device, isSale }: EventKind,
  { steps, pageTypes, device: wanted }: FunnelTerms,
): number {
  let found = 0
  steps.forEach((step, i) => {
    const matches =
      'pages' in step
        ? !isSale && types.some(type => pageTypes.has(type)) && step.pages.some(page => matchesPattern(path, page))
        : types.includes(step.eventType)
    if (matches && (i > 0 || wanted === null || device === wanted)) found |= 1 << i
  })
  return found
}

/** `*` stands for any characters. */
function matchesPattern(text: string, pattern: string): boolean {
  const parts = pattern.split('*')
  if (parts.length === 1) return text === pattern
  const [head, tail] = [parts[0]!, parts.at(-1)!]
  if (text.length < head.length + tail.length || !text.startsWith(head) || !text.endsWith(tail)) return false
  let from = head.length
  for (const part of parts.slice(1, -1)) {
    const at = text.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return from <= text.length - tail.length
}

const NO_PERSON = -1
const UNKNOWN = -2

/** A person did a step if they did it after all steps before it, and within the time limit after the first one. */
export function openFunnel({ steps, until, withinMs }: FunnelTerms) {
  const personOfNode = new Map<number, number>()
  const personOfProfile = new Map<number, number>()
  // By step and person: the latest start that led to the step, and the shortest time from a start to it; NaN: none.
  let starts = steps.map(() => new Float64Array(0))
  let fastest = steps.map(() => new Float64Array(0))
  const matched = steps.map(() => 0)

  function add(node: number, at: number, which: number): void {
    const person = personOfNode.get(node)!
    // The last step first, because one event is not two steps.
    for (let i = steps.length - 1; i >= 0; i--) {
      if (((which >> i) & 1) === 0) continue
      matched[i]!++
      if (person === NO_PERSON) continue
      const start = i > 0 ? starts[i - 1]![person]! : at <= until ? at : Number.NaN
      if (!(at <= start + withinMs)) continue
      starts[i]![person] = start
      if (!(fastest[i]![person]! <= at - start)) fastest[i]![person] = at - start
    }
  }

  return {
    /** The nodes whose profiles the funnel needs to know before it can add these events. */
    unknownNodes(...lists: StepEvents[]): number[] {
      const unknown: number[] = []
      for (const { length, nodes } of lists)
        for (let i = 0; i < length; i++) {
          if (personOfNode.has(nodes[i]!)) continue
          unknown.push(nodes[i]!)
          personOfNode.set(nodes[i]!, UNKNOWN)
        }
      return unknown
    },
    /** Null: the node belongs to no one. */
    assign(node: number, profile: number | null): void {
      const person = profile === null ? NO_PERSON : (personOfProfile.get(profile) ?? personOfProfile.size)
      if (person === personOfProfile.size) {
        personOfProfile.set(profile!, person)
        if (person === starts[0]!.length) [starts, fastest] = [starts.map(grown), fastest.map(grown)]
      }
      personOfNode.set(node, person)
    },
    /**
     * Adds events and sales that follow those added before. A sale follows the events of the same time. Pauses after each list,
     * because a million events take 0.1 s.
     */
    *add(lists: StepEvents[], sales: StepEvents): Generator<void> {
      let sale = 0
      const addSales = (until: number) => {
        for (; sale < sales.length && sales.times[sale]! < until; sale++)
          add(sales.nodes[sale]!, sales.times[sale]!, sales.steps[sale]!)
      }
      for (const { length, nodes, times, steps } of lists) {
        for (let i = 0; i < length; i++) {
          addSales(times[i]!)
          add(nodes[i]!, times[i]!, steps[i]!)
        }
        yield
      }
      addSales(Number.POSITIVE_INFINITY)
    },
    /** By step, the number of events added. */
    matched: (): readonly number[] => matched,
    /** By step: the number of people, and the median of their shortest time from the first step. */
    totals(): { people: number; medianSeconds: number | null }[] {
      return fastest.map(each => {
        const times = each.filter(ms => !Number.isNaN(ms)).sort()
        return { people: times.length, medianSeconds: times.length === 0 ? null : median(times) / 1_000 }
      })
    },
    /** The last step (from 0) of each person who did one, by profile. */
    lastSteps(): Map<number, number> {
      const last = new Map<number, number>()
      for (const [profile, person] of personOfProfile) {
        const step = fastest.findLastIndex(each => !Number.isNaN(each[person]))
        if (step >= 0) last.set(profile, step)
      }
      return last
    },
  }
}

function grown(values: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(Math.max(1_024, 2 * values.length)).fill(Number.NaN)
  larger.set(values)
  return larger
}

function median(sorted: Float64Array): number {
  const middle = (sorted.length - 1) / 2
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2
}
