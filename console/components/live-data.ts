import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { List } from '../api/types.ts'

const POLL_EVERY_MS = 3_000
/** Longer than this, a list is no longer added to: it begins anew with its newest rows. */
const MAX_ROWS = 200

type Polling<Data> = {
  next(before: Data, signal: AbortSignal): Promise<Data>
  /** Switched off by whoever looks; otherwise it goes on for as long as somebody does. */
  isOn?: ReadonlySignal<boolean>
}

/** What was read first, read again every few seconds while somebody looks at it. */
export function useLiveData<Data>(first: Data, { next, isOn }: Polling<Data>): Data {
  const current = useSignal({ first, data: first })
  useEffect(() => {
    current.value = { first, data: first }
    const left = new AbortController()
    let isReading = false
    const follow = async () => {
      if (isReading || document.hidden || isOn?.peek() === false) return
      isReading = true
      try {
        const before = current.peek().data
        const data = await next(before, left.signal)
        if (!left.signal.aborted && hasChanged(before, data)) current.value = { first, data }
      } finally {
        isReading = false
      }
    }
    // A reading that fails is followed by another one: what is shown stays.
    const timer = setInterval(() => follow().catch(() => {}), POLL_EVERY_MS)
    return () => {
      clearInterval(timer)
      left.abort()
    }
  }, [first])
  // What was read anew by the page itself counts at once.
  return current.value.first === first ? current.value.data : first
}

/** The newest rows on top of those that are known; further pages go on where they went on before. */
export function prependNewest<Row>(
  before: List<Row>,
  newest: List<Row>,
  rowKey: (row: Row) => string,
): List<Row> {
  const fresh = new Set(newest.results.map(rowKey))
  const rest = before.results.filter(row => !fresh.has(rowKey(row)))
  const isJoined = rest.length < before.results.length
  if (!isJoined || newest.results.length + rest.length > MAX_ROWS) return newest
  return { results: [...newest.results, ...rest], next_cursor: before.next_cursor }
}

function hasChanged(before: unknown, next: unknown): boolean {
  return before !== next && JSON.stringify(before) !== JSON.stringify(next)
}
