import { signal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { date, dateTime, NONE, relative, shortDateTime, utc } from '../format.ts'
import { html } from '../html.ts'

type TimeProps = { at: string | null | undefined }

/** In the time zone of the tenant; the tooltip has UTC. `hasYear`: also in the current year. */
export function Time({ at, hasYear = false }: TimeProps & { hasYear?: boolean }): VNode {
  const shown = hasYear ? dateTime : shortDateTime
  return timeElement(at, moment => ({ shown: shown(moment), title: utc(moment) }))
}

export function Day({ at }: TimeProps): VNode {
  return timeElement(at, moment => ({ shown: date(moment), title: utc(moment) }))
}

/** "3 minutes ago", updated every second; the tooltip has the exact time. */
export function Ago({ at }: TimeProps): VNode {
  const now = useNow(at)
  return timeElement(at, moment => ({
    shown: relative(moment, now),
    title: `${dateTime(moment)} (${utc(moment)})`,
  }))
}

const TICK_MS = 1_000
/** Older times change too rarely to be updated. */
const WATCHED_MS = 3_600_000
const ticks = signal(0)
let watchers = 0
let timer: ReturnType<typeof setInterval>

/** The current time; recent times are rendered again every second. */
function useNow(at: TimeProps['at']): Date {
  const isWatched = Math.abs(Date.now() - Date.parse(at ?? '')) < WATCHED_MS
  useEffect(() => {
    if (!isWatched) return
    if (watchers++ === 0) timer = setInterval(tick, TICK_MS)
    return () => {
      if (--watchers === 0) clearInterval(timer)
    }
  }, [isWatched])
  // Reading the signal renders the component again at the next tick.
  if (isWatched) void ticks.value
  return new Date()
}

function tick(): void {
  if (!document.hidden) ticks.value++
}

function timeElement(at: TimeProps['at'], present: (at: Date) => { shown: string; title: string }): VNode {
  const moment = new Date(at ?? '')
  if (Number.isNaN(moment.getTime())) return html`<span>${at || NONE}</span>`
  const { shown, title } = present(moment)
  return html`<time datetime=${at} title=${title}>${shown}</time>`
}
