import { type Signal, useSignal } from '@preact/signals'
import type { RefObject, VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { h, html } from '../html.ts'
import { Table } from './table.ts'
import { Time } from './time.ts'

export type Series = {
  label: string
  /** One a moment; null where nothing is known. */
  values: (number | null)[]
  /** A value that holds until the next one. */
  isStepped?: boolean
}

type PlotProps = {
  /** What is drawn, in words: the name of the picture. */
  title: string
  /** Oldest first. */
  moments: Date[]
  series: Series[]
  /** A value as text: money, a count, a share. */
  shown(value: number): string
}

const HEIGHT = 220

/** Values over time: drawn for the eye, and as a table for whoever wants the numbers or cannot see the drawing. */
export function Plot(props: PlotProps): VNode {
  const place = useRef<HTMLDivElement>(null)
  const isDark = useColorScheme()
  useDrawing(place, props, isDark)
  return html`
    <figure class="plot">
      <div class="drawing" role="img" aria-label=${props.title}><div ref=${place} /></div>
      <details>
        <summary>As a table</summary>
        ${h(PlotTable, props)}
      </details>
    </figure>
  `
}

function PlotTable({ title, moments, series, shown }: PlotProps): VNode {
  return h(Table<number>, {
    caption: title,
    columns: [
      { label: 'When', cell: index => h(Time, { at: moments[index]!.toISOString() }) },
      ...series.map(({ label, values }) => ({
        label,
        cell: (index: number) => textOf(values[index], shown),
        kind: 'number' as const,
      })),
    ],
    rows: moments.map((_, index) => index),
  })
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

/** Draws anew when the values or the colours change, and fits the drawing to its place. The library comes when needed. */
function useDrawing(
  place: RefObject<HTMLDivElement | null>,
  props: PlotProps,
  isDark: Signal<boolean>,
): void {
  useEffect(() => {
    const element = place.current!
    let drawing: uPlot | null = null
    let isGone = false
    import('uplot').then(({ default: Drawing }) => {
      if (isGone) return
      const options = optionsFor(props, element)
      const data = [props.moments.map(at => at.getTime() / 1000), ...props.series.map(({ values }) => values)]
      drawing = new Drawing(options(Drawing), data as uPlot.AlignedData, element)
    })
    const fitted = new ResizeObserver(() => drawing?.setSize({ width: element.clientWidth, height: HEIGHT }))
    fitted.observe(element)
    return () => {
      isGone = true
      fitted.disconnect()
      drawing?.destroy()
    }
  }, [JSON.stringify([props.moments, props.series]), isDark.value])
}

const COLOURS = ['--accent', '--second', '--third', '--bad']

function optionsFor({ series, shown }: PlotProps, element: HTMLElement) {
  const style = getComputedStyle(element)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const axis = {
    stroke: colour('--faint'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
    font: `12px ${style.fontFamily}`,
  }
  return (Drawing: typeof uPlot): uPlot.Options => ({
    width: element.clientWidth,
    height: HEIGHT,
    cursor: { drag: { x: false, y: false } },
    axes: [axis, { ...axis, size: 80, values: (_plot, ticks) => ticks.map(tick => shown(tick)) }],
    scales: { y: { range: (_plot, lowest, highest) => rangeOf(lowest, highest) } },
    series: [
      { label: 'When' },
      ...series.map(({ label, isStepped }, index): uPlot.Series => {
        const stepped = isStepped && Drawing.paths.stepped?.({ align: 1 })
        return {
          label,
          stroke: colour(COLOURS[index % COLOURS.length]!),
          width: 2,
          value: (_plot, value) => textOf(value, shown),
          ...(stepped && { paths: stepped }),
        }
      }),
    ],
  })
}

/** From zero, so that small changes look small. */
function rangeOf(lowest: number, highest: number): [number, number] {
  const [low, high] = [Math.min(0, lowest), Math.max(0, highest)]
  return low === high ? [0, 1] : [low * 1.05, high * 1.05]
}

function textOf(value: number | null | undefined, shown: (value: number) => string): string {
  return value === null || value === undefined ? '–' : shown(value)
}
