import type { VNode } from 'preact'
import { date, dateTime, NONE, relative, utc } from '../format.ts'
import { html } from '../html.ts'

type TimeProps = { at: string | null | undefined }

/** Local time, with UTC for those who point at it. */
export function Time({ at }: TimeProps): VNode {
  return timeElement(at, moment => ({ shown: dateTime(moment), title: utc(moment) }))
}

export function Day({ at }: TimeProps): VNode {
  return timeElement(at, moment => ({ shown: date(moment), title: utc(moment) }))
}

/** 3 minutes ago, with the exact time for those who point at it. */
export function Ago({ at }: TimeProps): VNode {
  return timeElement(at, moment => ({
    shown: relative(moment, new Date()),
    title: `${dateTime(moment)} (${utc(moment)})`,
  }))
}

function timeElement(at: TimeProps['at'], present: (at: Date) => { shown: string; title: string }): VNode {
  const moment = new Date(at ?? '')
  if (Number.isNaN(moment.getTime())) return html`<span>${at || NONE}</span>`
  const { shown, title } = present(moment)
  return html`<time datetime=${at} title=${title}>${shown}</time>`
}
