import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { reports } from '../../api/data.ts'
import { tenant } from '../../session.ts'
import type { Scope } from './report.ts'

/** By tenant; as long as nothing has come in it is asked for again. */
const known = new Map<string, string>()

/** The day of the first billing event, as 2026-11-02; null while that is not known, or nothing has come in. */
export function useFirstDay({ currency }: Scope): string | null {
  const whose = tenant.value ?? ''
  const first = useSignal(known.get(whose) ?? null)
  useEffect(() => {
    if (known.has(whose)) return
    const left = new AbortController()
    // Without it the slider only reaches further back than it needs to.
    readFirstDay(currency, left.signal).then(
      day => {
        if (day === null || left.signal.aborted) return
        known.set(whose, day)
        first.value = day
      },
      () => {},
    )
    return () => left.abort()
  }, [whose])
  return known.get(whose) ?? first.value
}

async function readFirstDay(currency: string, signal: AbortSignal): Promise<string | null> {
  const { coverage } = await reports.overview({ currency, page_size: 1 }, signal)
  return coverage.first_event_at?.slice(0, 10) ?? null
}
