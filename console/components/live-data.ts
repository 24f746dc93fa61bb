import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { errorStatus } from '../api/request.ts'
import type { List } from '../api/types.ts'
import { endSession } from '../session.ts'

const POLL_EVERY_MS = 3_000
/** A longer list is replaced by its newest rows. */
const MAX_ROWS = 200

type Polling<Data> = {
  next(before: Data, signal: AbortSignal): Promise<Data>
  /** Pauses polling while false. */
  isOn?: ReadonlySignal<boolean>
}

/** Reads the data of a page again every few seconds while the page is visible. */
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
      } catch (error) {
        // After another error the shown data stays, and the next read tries again.
        if (errorStatus(error) === 401 && !left.signal.aborted) endSession(error)
      } finally {
        isReading = false
      }
    }
    const timer = setInterval(follow, POLL_EVERY_MS)
    return () => {
      clearInterval(timer)
      left.abort()
    }
  }, [first])
  // Data that the page itself has refreshed takes effect at once.
  return current.value.first === first ? current.value.data : first
}

/** Puts the newest rows on top of the known ones. The cursor of the next page stays. */
export function prependNewest<Row>(before: List<Row>, newest: List<Row>, rowKey: (row: Row) => string): List<Row> {
  const fresh = new Set(newest.results.map(rowKey))
  const rest = before.results.filter(row => !fresh.has(rowKey(row)))
  const isJoined = rest.length < before.results.length
  if (!isJoined || newest.results.length + rest.length > MAX_ROWS) return newest
  return { results: [...newest.results, ...rest], next_cursor: before.next_cursor }
}

function hasChanged(before: unknown, next: unknown): boolean {
  return before !== next && JSON.stringify(before) !== JSON.stringify(next)
}
