import { type Signal, useSignal } from '@preact/signals'
import type { RefObject, VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { shortTime, type TimeUnit } from '../format.ts'
import { h, html } from '../html.ts'
import { type Drawn, plotOptions, type Series, stacked } from './plot-options.ts'
import { Table } from './table.ts'
import { Day, Time } from './time.ts'

export type { Series } from './plot-options.ts'

type PlotProps = Drawn & {
  /** What is drawn, in words: the name of the picture. */
  title: string
}

/** Values over time: drawn for the eye, and as a table for whoever wants the numbers or cannot see the drawing. */
export function Plot(props: PlotProps): VNode {
  const place = useRef<HTMLDivElement>(null)
  const isDark = useColorScheme()
  useDrawing(place, props, isDark)
  return html`
    <figure class="plot">
      <div class="drawing" role="img" aria-label=${props.title}><div ref=${place} /></div>
      <details>
        <summary>Show as table</summary>
        ${h(PlotTable, props)}
      </details>
    </figure>
  `
}

function PlotTable({ title, moments, series, shown, unit = 'hour' }: PlotProps): VNode {
  return h(Table<number>, {
    caption: title,
    columns: [
      { label: 'Time', cell: index => whenOf(moments[index]!, unit) },
      ...series.map(({ label, values }) => ({
        label,
        cell: (index: number) => textOf(values[index], shown),
        kind: 'number' as const,
      })),
    ],
    rows: moments.map((_, index) => index),
    csv: { rows: moments.map((at, index) => pointsAt(at, index, series)), name: title },
  })
}

function pointsAt(at: Date, index: number, series: Series[]): object {
  return {
    at: at.toISOString(),
    ...Object.fromEntries(series.map(({ label, values }) => [label, values[index]])),
  }
}

function whenOf(at: Date, unit: TimeUnit): VNode {
  if (unit === 'month') return html`<span>${shortTime(at, unit)}</span>`
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

function textOf(value: number | null | undefined, shown: (value: number) => string): string {
  return value === null || value === undefined ? '–' : shown(value)
}
