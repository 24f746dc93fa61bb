import type uPlot from 'uplot'
import { NONE, shortTime, type TimeUnit } from '../format.ts'

export type Series = {
  label: string
  /** One a moment; null where nothing is known. */
  values: (number | null)[]
  /** A value that holds until the next one. */
  isStepped?: boolean
  /** To compare with: drawn thin and faint. */
  isAside?: boolean
}

/** What is drawn. */
export type Drawn = {
  /** Oldest first. */
  moments: Date[]
  series: Series[]
  /** A value as text: money, a count, a share. */
  shown(value: number): string
  /** The same in short, for the axis. */
  axisShown?(value: number): string
  unit?: TimeUnit
  /** Bars, one on top of the other; what is negative hangs below. */
  isStacked?: boolean
  height?: number
}

const HEIGHT = 220
const HALF_A_LABEL = 32
/** As wide as the labels below it. */
const SPACES: Record<TimeUnit, number> = { hour: 66, day: 84, month: 62 }
const COLOURS = ['--accent', '--second', '--third', '--fourth', '--bad']
const ASIDE = ['--faint', '--second']

export function plotOptions(Drawing: typeof uPlot, drawn: Drawn, element: HTMLElement): uPlot.Options {
  const { shown, axisShown = shown, unit = 'hour', height = HEIGHT } = drawn
  const style = getComputedStyle(element)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const axis = {
    stroke: colour('--faint'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
  }
  const times = (_plot: uPlot, ticks: number[]) => ticks.map(tick => shortTime(new Date(tick * 1000), unit))
  return {
    ...{ width: element.clientWidth, height },
    // On the right half a label, which else were cut where the last moment has one.
    padding: [12, HALF_A_LABEL, 0, 0],
    cursor: { drag: { x: false, y: false } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        values: times,
        space: SPACES[unit],
        size: 30,
        incrs: INCREMENTS[unit],
      },
      {
        ...{
          ...axis,
          size: widthOfAxis,
          values: (_plot: uPlot, ticks: number[]) => ticks.map(tick => axisShown(tick)),
        },
        ...(isCount(drawn) && { incrs: WHOLE_INCREMENTS }),
      },
    ],
    scales: {
      y: { range: (_plot, lowest, highest) => rangeOf(lowest, highest) },
      ...((drawn.isStacked || drawn.moments.length === 1) && { x: { range: withRoom(drawn.moments, unit) } }),
    },
    series: [
      {
        label: 'Time',
        value: (_plot, _at, _series, index) => {
          const at = drawn.moments[index ?? lastKnown(drawn)]
          return at ? shortTime(at, unit) : NONE
        },
      },
      ...(drawn.isStacked ? bars(Drawing, drawn, colour) : lines(Drawing, drawn, colour)),
    ],
  }
}

const HOUR = 3_600
const DAY = 24 * HOUR
/** Steps of the axis, in seconds: never shorter than what is drawn. */
const INCREMENTS: Record<TimeUnit, number[]> = {
  hour: [HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY],
  day: [DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 365 * DAY],
  month: [30 * DAY, 61 * DAY, 91 * DAY, 182 * DAY, 365 * DAY],
}

/** 1, 2, 5, 10, 20, … as far as numbers are exact. */
const WHOLE_INCREMENTS = Array.from({ length: 15 }, (_, power) =>
  [1, 2, 5].map(step => step * 10 ** power),
).flat()

/** Nothing between 0 and 1 can be read off what is counted. */
function isCount({ series }: Drawn): boolean {
  return series.every(({ values }) => values.every(value => value === null || Number.isInteger(value)))
}

function lines(Drawing: typeof uPlot, drawn: Drawn, colour: (name: string) => string): uPlot.Series[] {
  const names = colourNames(drawn.series)
  return drawn.series.map(({ label, values, isStepped, isAside }, index) => {
    const stepped = isStepped && Drawing.paths.stepped?.({ align: 1 })
    const stroke = colour(names[index]!)
    return {
      ...{ label, stroke },
      ...(isAside ? { width: 1, dash: index % 2 ? [4, 3] : [1, 3] } : { width: 2 }),
      points: { show: false, filter: loneValues(values), size: 6, fill: stroke },
      value: valueIn(drawn, values),
      ...(stepped && { paths: stepped }),
    }
  })
}

/** What is told below the drawing: where one points at, else the newest there is. */
function valueIn(drawn: Drawn, values: Series['values']): uPlot.Series.Value {
  return (_plot, _drawn, _series, index) => {
    const value = values[index ?? lastKnown(drawn)]
    return value === null || value === undefined ? NONE : drawn.shown(value)
  }
}

/** Of the first series, which is what the drawing is about. */
function lastKnown({ series }: Drawn): number {
  return series[0]?.values.findLastIndex(value => value !== null) ?? -1
}

function colourNames(series: Series[]): string[] {
  let [main, aside] = [0, 0]
  return series.map(({ isAside }) => (isAside ? ASIDE[aside++ % 2]! : COLOURS[main++ % COLOURS.length]!))
}

/** The tallest bars are drawn first, so that the shorter ones lie on them. */
function bars(Drawing: typeof uPlot, drawn: Drawn, colour: (name: string) => string): uPlot.Series[] {
  const paths = Drawing.paths.bars?.({ size: [0.6, 40] })
  return drawn.series.map(({ label, values }, index) => ({
    label,
    fill: colour(COLOURS[index % COLOURS.length]!),
    stroke: colour(COLOURS[index % COLOURS.length]!),
    width: 0,
    points: { show: false },
    value: valueIn(drawn, values),
    ...(paths && { paths }),
  }))
}

/** Each value on top of those that come after it, gains upwards and losses downwards: the first are the tallest. */
export function stacked(series: Series[]): (number | null)[][] {
  const length = series[0]?.values.length ?? 0
  const tops = Array.from({ length }, () => ({ gain: 0, loss: 0 }))
  const drawn = series.toReversed().map(({ values }) =>
    values.map((value, index) => {
      const side = (value ?? 0) < 0 ? 'loss' : 'gain'
      tops[index]![side] += value ?? 0
      return value === null || value === 0 ? null : tops[index]![side]
    }),
  )
  return drawn.reverse()
}

/** As wide as the longest number on it. */
function widthOfAxis(_plot: uPlot, values: string[] | null): number {
  return 16 + 7 * Math.max(3, ...(values ?? []).map(value => value.length))
}

/** Where values stand alone: no line reaches them, so that they are drawn as points. */
function loneValues(values: Series['values']): number[] | null {
  const isKnown = (index: number) => values[index] !== null && values[index] !== undefined
  const lone = values.flatMap((_, index) =>
    isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1) ? [index] : [],
  )
  return lone.length > 0 ? lone : null
}

const STEPS: Record<TimeUnit, number> = { hour: HOUR, day: DAY, month: 30 * DAY }

/** Half a step at both ends, where bars would be cut, and one moment alone would stand at the edge. */
function withRoom(moments: Date[], unit: TimeUnit): uPlot.Range.MinMax {
  const [first, last] = [moments[0], moments.at(-1)].map(at => (at?.getTime() ?? 0) / 1000) as [
    number,
    number,
  ]
  const half = moments.length > 1 ? (last - first) / (moments.length - 1) / 2 : STEPS[unit] / 2
  return [first - half, last + half]
}

/** From zero, so that small changes look small. */
function rangeOf(lowest: number, highest: number): [number, number] {
  const [low, high] = [Math.min(0, lowest ?? 0), Math.max(0, highest ?? 0)]
  return low === high ? [0, 1] : [low * 1.05, high * 1.05]
}
