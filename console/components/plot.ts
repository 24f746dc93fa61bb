import { type Signal, useSignal } from '@preact/signals'
import type { RefObject, VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { longTime, NONE, shortTime, type TimeUnit } from '../format.ts'
import { h, html } from '../html.ts'
import { go, hrefWithView } from '../navigation.ts'
import { periodOfStep, type Step } from '../period.ts'
import { withView } from '../view.ts'
import { Table } from './table.ts'
import { Day, Time } from './time.ts'

type PlotProps = Drawn & {
  /** Describes the plot for screen readers. */
  title: string
  /** Makes each step a link to its period. */
  zoom?: Zoom
}

/** The first day of each step. `opens`: the page to open; default: this one. */
export type Zoom = { days: string[]; step: Step; opens?: string }

function zoomHref({ days, step, opens }: Zoom, first: number, last = first): string {
  const [from] = periodOfStep(days[first]!, step).split('..')
  const [, to] = periodOfStep(days[last]!, step).split('..')
  const period = `${from}..${to}`
  return opens === undefined ? hrefWithView({ period }) : withView(opens, { period })
}

/** Values over time as a plot, and as a table for exact numbers and screen readers. */
export function Plot(props: PlotProps): VNode {
  const place = useRef<HTMLDivElement>(null)
  const isDark = useColorScheme()
  useDrawing(place, props, isDark)
  const names = colorNames(props.series)
  return html`
    <figure class="plot">
      ${
        props.series.length > 1 &&
        html`<ul class="legend" aria-hidden="true">
          ${props.series.map(({ label }, index) => html`<li class=${names[index]!.slice(2)}>${label}</li>`)}
        </ul>`
      }
      <div class=${props.zoom ? 'drawing zooms' : 'drawing'} role="img" aria-label=${props.title}><div ref=${place} /></div>
      <details>
        <summary>Show as table</summary>
        ${h(PlotTable, props)}
      </details>
    </figure>
  `
}

function PlotTable({ title, moments, series, shown, unit = 'hour', zoom }: PlotProps): VNode {
  const time = (index: number) => {
    const cell = timeCell(moments[index]!, unit)
    return zoom?.days[index] ? html`<a href=${zoomHref(zoom, index)}>${cell}</a>` : cell
  }
  return h(Table<number>, {
    caption: title,
    columns: [
      { label: 'Time', cell: time },
      ...series.map(({ label, values }) => ({
        label,
        cell: (index: number) => formatValue(values[index], shown),
        kind: 'number' as const,
      })),
    ],
    rows: moments.map((_, index) => index),
    csv: { rows: moments.map((at, index) => csvRow(at, index, series)), name: title },
  })
}

function csvRow(at: Date, index: number, series: Series[]): object {
  return {
    at: at.toISOString(),
    ...Object.fromEntries(series.map(({ label, values }) => [label, values[index]])),
  }
}

function timeCell(at: Date, unit: TimeUnit): VNode {
  if (unit === 'month' || unit === 'week') return html`<span>${longTime(at, unit)}</span>`
  return unit === 'day' ? h(Day, { at: at.toISOString() }) : h(Time, { at: at.toISOString() })
}

function useColorScheme(): Signal<boolean> {
  const query = matchMedia('(prefers-color-scheme: dark)')
  const isDark = useSignal(query.matches)
  useEffect(() => {
    const changed = () => {
      isDark.value = query.matches
    }
    query.addEventListener('change', changed)
    return () => query.removeEventListener('change', changed)
  }, [])
  return isDark
}

/** Draws again when the values or the colors change, and resizes with its container. uPlot is loaded on first use. */
function useDrawing(place: RefObject<HTMLDivElement | null>, props: PlotProps, isDark: Signal<boolean>): void {
  useEffect(() => {
    const element = place.current!
    let drawing: uPlot | null = null
    let isGone = false
    import('uplot').then(({ default: Drawing }) => {
      if (isGone) return
      const options = plotOptions(Drawing, props, element)
      const lines = props.isStacked ? stacked(props.series) : props.series.map(({ values }) => values)
      const data = [props.moments.map(at => at.getTime() / 1000), ...lines]
      drawing = new Drawing(options, data as uPlot.AlignedData, element)
    })
    const fitted = new ResizeObserver(() => {
      const height = drawing?.height
      if (height !== undefined) drawing?.setSize({ width: element.clientWidth, height })
    })
    fitted.observe(element)
    return () => {
      isGone = true
      fitted.disconnect()
      drawing?.destroy()
    }
  }, [JSON.stringify([props.moments, props.series]), isDark.value])
}

function formatValue(value: number | null | undefined, shown: (value: number) => string): string {
  return value === null || value === undefined ? NONE : shown(value)
}

export type Series = {
  label: string
  /** One value per moment; null where it is unknown. */
  values: (number | null)[]
  /** Each value holds until the next one. */
  isStepped?: boolean
  /** For comparison: drawn thin and faint. */
  isAside?: boolean
  /** When the values of a comparison are from. */
  moments?: (Date | undefined)[]
}

type Drawn = {
  /** Oldest first. */
  moments: Date[]
  series: Series[]
  /** Formats a value: money, a count, a share. */
  shown(value: number): string
  /** A shorter format for the axis. */
  axisShown?(value: number): string
  unit?: TimeUnit
  /** Stacked bars; negative values go below zero. */
  isStacked?: boolean
  height?: number
}

const HEIGHT = 220
const HALF_A_LABEL = 32
/** The minimum distance of labels, in pixels. */
const SPACES: Record<TimeUnit, number> = { hour: 66, day: 84, week: 84, month: 72 }
/** The class of a series' color in CSS. */
export const colorClass = (index: number): string => COLORS[index % COLORS.length]!.slice(2)
const COLORS = ['--accent', '--second', '--third', '--fourth', '--bad', '--fifth']
const ASIDE = ['--faint', '--second']

function plotOptions(Drawing: typeof uPlot, drawn: PlotProps, element: HTMLElement): uPlot.Options {
  const { shown, axisShown = shown, unit = 'hour', height = HEIGHT, zoom } = drawn
  const style = getComputedStyle(element)
  const color = (name: string) => style.getPropertyValue(name).trim()
  const axis = {
    stroke: color('--faint'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
  }
  const times = (_plot: uPlot, ticks: number[]) => ticks.map(tick => shortTime(new Date(tick * 1000), unit))
  return {
    ...{ width: element.clientWidth, height },
    // Half a label on the right, so that the last one is not cut.
    padding: [12, HALF_A_LABEL, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: zoom !== undefined, y: false, setScale: false, dist: 8 } },
    plugins: [tooltip(drawn, color), ...(zoom ? [zooming(zoom)] : [])],
    axes: [
      { ...axis, grid: { show: false }, values: times, splits: plot => ticksOf(plot, drawn), size: 32, gap: 9 },
      {
        ...{
          ...axis,
          size: axisWidth,
          values: (_plot: uPlot, ticks: number[]) => ticks.map(tick => axisShown(tick)),
        },
        ...(isCount(drawn) && { incrs: WHOLE_INCREMENTS }),
      },
    ],
    scales: {
      y: { range: (_plot, lowest, highest) => valueRange(lowest, highest) },
      ...((drawn.isStacked || drawn.moments.length === 1) && {
        x: { range: paddedRange(drawn.moments, unit) },
      }),
    },
    series: [{}, ...(drawn.isStacked ? bars(Drawing, drawn, color) : lines(Drawing, drawn, color))],
  }
}

/** Labels stand at values, never between them: as many as fit, from the newest. */
function ticksOf(plot: uPlot, { moments, unit = 'hour' }: Drawn): number[] {
  const width = plot.bbox.width / devicePixelRatio
  const first = moments[0]?.getTime() ?? 0
  const span = (moments.at(-1)?.getTime() ?? 0) - first
  const ticks: number[] = []
  let before = Number.POSITIVE_INFINITY
  for (const [index, at] of [...moments.entries()].toReversed()) {
    // Months count as equally long, so that February is not left out.
    const share = unit === 'month' ? index / (moments.length - 1) : (at.getTime() - first) / span
    const x = span === 0 ? 0 : share * width
    if (before - x < SPACES[unit]) continue
    ticks.unshift(at.getTime() / 1000)
    before = x
  }
  return ticks
}

/** The values at the pointer. */
function tooltip(drawn: PlotProps, color: (name: string) => string): uPlot.Plugin {
  const box = document.createElement('div')
  box.className = 'tooltip'
  const names = colorNames(drawn.series)
  const line = (text: string, swatch?: string) => {
    const row = document.createElement('div')
    if (swatch) {
      const mark = document.createElement('i')
      mark.style.background = color(swatch)
      row.append(mark)
    }
    row.append(text)
    return row
  }
  return {
    hooks: {
      ready: plot => void plot.over.append(box),
      setCursor(plot) {
        const index = plot.cursor.idx ?? null
        const left = plot.cursor.left ?? -1
        box.hidden = index === null || left < 0
        if (index === null || box.hidden) return
        const at = drawn.moments[index]!
        const rows = drawn.series.map(({ label, values, moments }, number) => {
          const when = moments?.[index] ? ` (${shortTime(moments[index], drawn.unit ?? 'hour')})` : ''
          return line(`${label}${when}: ${formatValue(values[index], drawn.shown)}`, names[number])
        })
        box.replaceChildren(line(longTime(at, drawn.unit ?? 'hour')), ...rows)
        const isRight = left > plot.over.clientWidth / 2
        box.style.transform = `translate(${isRight ? left - box.offsetWidth - 12 : left + 12}px, 4px)`
      },
    },
  }
}

/** A click opens the period of a step, dragging that of several. */
function zooming(zoom: Zoom): uPlot.Plugin {
  let isDragged = false
  return {
    hooks: {
      ready(plot) {
        plot.over.addEventListener('click', () => {
          const index = plot.cursor.idx ?? null
          if (!isDragged && index !== null && zoom.days[index]) go(zoomHref(zoom, index))
          isDragged = false
        })
      },
      setSelect(plot) {
        const { left, width } = plot.select
        if (width < 8) return
        isDragged = true
        const [first, last] = [plot.posToIdx(left), plot.posToIdx(left + width)]
        if (zoom.days[first] && zoom.days[last]) go(zoomHref(zoom, first, last))
      },
    },
  }
}

const HOUR = 3_600
const DAY = 24 * HOUR

/** 1, 2, 5, 10, 20, … while integers are exact. */
const WHOLE_INCREMENTS = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map(step => step * 10 ** power)).flat()

/** An axis of counts has no fractions. */
function isCount({ series }: Drawn): boolean {
  return series.every(({ values }) => values.every(value => value === null || Number.isInteger(value)))
}

function lines(Drawing: typeof uPlot, drawn: Drawn, color: (name: string) => string): uPlot.Series[] {
  const names = colorNames(drawn.series)
  const isOnly = drawn.series.filter(({ isAside }) => !isAside).length === 1
  return drawn.series.map(({ label, values, isStepped, isAside }, index) => {
    const stepped = isStepped && Drawing.paths.stepped?.({ align: 1 })
    const stroke = color(names[index]!)
    return {
      ...{ label, stroke },
      ...(isAside ? { width: 1, dash: index % 2 ? [4, 3] : [1, 3] } : { width: 2 }),
      ...(isOnly && !isAside && { fill: `${stroke}14` }),
      points: { show: false, filter: isolatedValues(values), size: 6, fill: stroke },
      ...(stepped && { paths: stepped }),
    }
  })
}

function colorNames(series: Series[]): string[] {
  let [main, aside] = [0, 0]
  return series.map(({ isAside }) => (isAside ? ASIDE[aside++ % 2]! : COLORS[main++ % COLORS.length]!))
}

/** The tallest bars are drawn first, and shorter ones over them. */
function bars(Drawing: typeof uPlot, drawn: Drawn, color: (name: string) => string): uPlot.Series[] {
  const paths = Drawing.paths.bars?.({ size: [0.6, 40] })
  return drawn.series.map(({ label }, index) => ({
    label,
    fill: color(COLORS[index % COLORS.length]!),
    stroke: color(COLORS[index % COLORS.length]!),
    width: 0,
    points: { show: false },
    ...(paths && { paths }),
  }))
}

/** Adds to each value those of the later series, gains and losses apart. The first series becomes the tallest. */
function stacked(series: Series[]): (number | null)[][] {
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

/** Fits the longest label. */
function axisWidth(_plot: uPlot, values: string[] | null): number {
  return 16 + 7 * Math.max(3, ...(values ?? []).map(value => value.length))
}

/** Indexes of values without neighbors. No line reaches them, so they are drawn as points. */
function isolatedValues(values: Series['values']): number[] | null {
  const isKnown = (index: number) => values[index] !== null && values[index] !== undefined
  const lone = values.flatMap((_, index) =>
    isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1) ? [index] : [],
  )
  return lone.length > 0 ? lone : null
}

const STEPS: Record<TimeUnit, number> = { hour: HOUR, day: DAY, week: 7 * DAY, month: 30 * DAY }

/** Adds half a step at both ends, so that bars are not cut and a single moment is centered. */
function paddedRange(moments: Date[], unit: TimeUnit): uPlot.Range.MinMax {
  const [first, last] = [moments[0], moments.at(-1)].map(at => (at?.getTime() ?? 0) / 1000) as [number, number]
  const half = moments.length > 1 ? (last - first) / (moments.length - 1) / 2 : STEPS[unit] / 2
  return [first - half, last + half]
}

/** Starts at zero, so that small changes look small. */
function valueRange(lowest: number, highest: number): [number, number] {
  const [low, high] = [Math.min(0, lowest ?? 0), Math.max(0, highest ?? 0)]
  return low === high ? [0, 1] : [low * 1.05, high * 1.05]
}
