import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { events } from '../../api/data.ts'
import type { Conversion, Event } from '../../api/types.ts'

/** More than fit on a screen; older ones are in the list. */
const MOST = 200
const RECONNECT_MS = 3_000

export type Live<Row> = {
  /** Newest first. */
  rows: Signal<Row[]>
  /** Came in while it was paused. */
  held: Signal<Row[]>
  isPaused: Signal<boolean>
  isConnected: Signal<boolean>
  toggle(): void
}

export type LiveEvents = Live<Event>

/** Events as they come in, for as long as somebody looks. `isWanted`: what is looked at reaches to now. */
export function useLiveEvents(eventType: string | null, isWanted: boolean): LiveEvents {
  return useLive(signal => events.follow({ event_type: eventType }, signal), isWanted, [eventType])
}

/** Events and sales. */
export function useArrivals(): Live<Event | Conversion> {
  return useLive(events.followAll, true, [])
}

type Connect<Row> = (signal: AbortSignal) => AsyncIterable<Row>

/** `inputs`: what `connect` depends on. */
function useLive<Row>(connect: Connect<Row>, isWanted: boolean, inputs: unknown[]): Live<Row> {
  const rows = useSignal<Row[]>([])
  const held = useSignal<Row[]>([])
  const isPaused = useSignal(false)
  const isConnected = useSignal(false)
  useEffect(() => {
    rows.value = []
    held.value = []
    if (!isWanted) return
    const left = new AbortController()
    const take = (event: Row) => {
      const list = isPaused.peek() ? held : rows
      list.value = [event, ...list.peek()].slice(0, MOST)
    }
    follow(connect, { take, isConnected, signal: left.signal })
    return () => left.abort()
  }, [...inputs, isWanted])
  const toggle = () => {
    isPaused.value = !isPaused.peek()
    if (isPaused.peek()) return
    rows.value = [...held.peek(), ...rows.peek()].slice(0, MOST)
    held.value = []
  }
  return { rows, held, isPaused, isConnected, toggle }
}

type Follow<Row> = { take(row: Row): void; isConnected: Signal<boolean>; signal: AbortSignal }

/** A connection that ends is made again: the server ends it now and then, and may be away. */
async function follow<Row>(connect: Connect<Row>, { take, isConnected, signal }: Follow<Row>): Promise<void> {
  while (!signal.aborted) {
    try {
      isConnected.value = true
      for await (const row of connect(signal)) take(row)
    } catch {
      if (signal.aborted) return
      isConnected.value = false
    }
    await new Promise(resolve => setTimeout(resolve, RECONNECT_MS))
  }
}
