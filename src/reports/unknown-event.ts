import type pg from 'pg'
import { timeOfId } from '../domain/ids.ts'
import { hasErasedSince } from '../store/identity/erasures.ts'
import { firstsOf, sourcesAsked } from './event-outcome.ts'

const UNKNOWN = 'Nothing is known of such an event.'

/** In words, by its id here: somebody may have been erased since it came. Whose it was is not kept. */
export async function whyUnknown(pool: pg.Pool, tenantId: number, id: string): Promise<string> {
  return (await hasErasedSince(pool, tenantId, timeOfId(id)))
    ? `${UNKNOWN} People were erased since then: it may have been of one of them.`
    : UNKNOWN
}

/** The same by the id that its sender gave it: of what was processed a hash of that id stays. */
export async function whyUnknownSent(
  pool: pg.Pool,
  tenantId: number,
  { sentId, sourceId }: { sentId: string; sourceId: string | undefined },
): Promise<string> {
  const [first] = await firstsOf(pool, tenantId, sentId, await sourcesAsked(pool, tenantId, sourceId))
  if (first === undefined) return UNKNOWN
  return (await hasErasedSince(pool, tenantId, timeOfId(first)))
    ? 'An event with this id was processed, and is gone: erased with the person it was of, purged, or expired.'
    : 'An event with this id was processed, and is gone: purged, or expired.'
}
