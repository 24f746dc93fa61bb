import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { events } from '../../api/data.ts'
import type { Event } from '../../api/types.ts'

/** More than fit on a screen; older ones are in the list. */
const MOST = 200
const RECONNECT_MS = 3_000

export type LiveEvents = {
  /** Newest first. */
  rows: Signal<Event[]>
  /** Came in while it was paused. */
  held: Signal<Event[]>
  isPaused: Signal<boolean>
  isConnected: Signal<boolean>
  toggle(): void
}

/** Events as they come in, for as long as somebody looks. `isWanted`: what is looked at reaches to now. */
export function useLiveEvents(eventType: string | null, isWanted: boolean): LiveEvents {
  const rows = useSignal<Event[]>([])
  const held = useSignal<Event[]>([])
  const isPaused = useSignal(false)
  const isConnected = useSignal(false)
  useEffect(() => {
    rows.value = []
    held.value = []
    if (!isWanted) return
    const left = new AbortController()
    const take = (event: Event) => {
      const list = isPaused.peek() ? held : rows
      list.value = [event, ...list.peek()].slice(0, MOST)
    }
    follow(eventType, { take, isConnected, signal: left.signal })
    return () => left.abort()
  }, [eventType, isWanted])
  const toggle = () => {
    isPaused.value = !isPaused.peek()
    if (isPaused.peek()) return
    rows.value = [...held.peek(), ...rows.peek()].slice(0, MOST)
    held.value = []
  }
  return { rows, held, isPaused, isConnected, toggle }
}

type Follow = { take(event: Event): void; isConnected: Signal<boolean>; signal: AbortSignal }

/** A connection that ends is made again: the server ends it now and then, and may be away. */
async function follow(eventType: string | null, { take, isConnected, signal }: Follow): Promise<void> {
  while (!signal.aborted) {
    try {
      isConnected.value = true
      for await (const event of events.follow({ event_type: eventType }, signal)) take(event)
    } catch {
      if (signal.aborted) return
      isConnected.value = false
    }
    await new Promise(resolve => setTimeout(resolve, RECONNECT_MS))
  }
}
