import type { Bar } from './scenario.ts'

/** The result of one scenario. */
export type Result = {
  scenario: string
  at: string
  machine: { cores: number; cpu: string | undefined; node: string }
  generator: 'wrk' | 'autocannon'
  /** Cores used by other processes before the start, as an estimate of noise. */
  coresBusyBefore: number | null
  /** Cores that the host of a virtual machine gave to others during the runs: the largest of the runs. */
  coresStolen?: number
  /** The median of the runs, and the smallest and largest value. */
  bars: (Bar & { held: boolean; spread?: [number, number] })[]
  facts: Record<string, unknown>
  /** The error, if the scenario failed. */
  failed?: string
}

/** The key figures of one release, for docs/performance.md. */
export type Release = { version: string; at: string; machine: string; figures: Record<string, number> }

/** A number that is compared with the stored run. */
export type Figure = {
  scenario: string
  what: string
  value: number
  isBetter: 'higher' | 'lower'
  unit: string
}

/** Targets, and CPU time, which is the most stable number on a shared machine. */
export function listFigures({ scenario, bars, facts }: Result): Figure[] {
  const ofBars = bars.map(({ what, value, atLeast }) => ({
    scenario,
    what,
    value,
    isBetter: atLeast === undefined ? ('lower' as const) : ('higher' as const),
    unit: '',
  }))
  const costs = costsIn(facts).map(({ path, value }) => ({
    scenario,
    what: path,
    value,
    isBetter: 'lower' as const,
    unit: 'µs',
  }))
  return [...ofBars, ...costs]
}

const COSTS = { nodeUs: 'Node', postgresUs: 'PostgreSQL' }

function costsIn(value: unknown, path: string[] = []): { path: string; value: number }[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) => {
    if (key in COSTS && typeof each === 'number')
      return [
        {
          path: `${path.join(' ')}: CPU of ${COSTS[key as keyof typeof COSTS]}`.replace(/^: /, ''),
          value: each,
        },
      ]
    return costsIn(each, [...path, key])
  })
}

export type Move = Figure & { before: number; change: number }

// Twice the variation between two runs on an idle machine.
const MOVED = 0.15

/** Figures that changed, the worst first. */
export function movesSince(baseline: Result[], results: Result[]): Move[] {
  const key = ({ scenario, what }: Figure) => `${scenario} ${what}`
  const before = new Map(baseline.flatMap(listFigures).map(figure => [key(figure), figure.value]))
  return results
    .flatMap(listFigures)
    .flatMap(figure => {
      const was = before.get(key(figure))
      if (was === undefined || was === 0 || figure.value === 0) return []
      return [{ ...figure, before: was, change: figure.value / was - 1 }]
    })
    .filter(({ change }) => Math.abs(change) > MOVED)
    .sort((a, b) => worseBy(b) - worseBy(a))
}

export const worseBy = ({ isBetter, change }: Move) => (isBetter === 'higher' ? -change : change)
