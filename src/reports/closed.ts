import type { Segment } from '../domain/billing/timeline.ts'
import { endIn, momentIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import { type Closing, type KeptSource, keptSegments, keptSegmentsOf, keptSources } from '../store/billing/closings.ts'
import type { ReportQuestion } from './question.ts'

/** The closing that a report follows if it ends at this time. The end of a month belongs to the month. */
export function closingAt(closings: Closing[], at: Date): Closing | null {
  return closings.find(({ starts, ends }) => at > starts && at <= ends) ?? null
}

/** The same for the end of a report as requested. A date is one of the closing's time zone, whatever the time zone is now. */
export function closingOf(
  closings: Closing[],
  query: { as_of?: string | undefined; until?: string | undefined },
  now: Date,
): Closing | null {
  const ends = (zone: string) => {
    const [until, asOf] = [endIn(zone, query.until), momentIn(zone, query.as_of) ?? now]
    return until !== null && until < asOf ? until : asOf
  }
  return closings.find(closing => closingAt([closing], ends(closing.policy.timeZone)) !== null) ?? null
}

/** The accounts that changed since the closing that a report follows, as they were then. */
export type KeptAccounts = {
  /** By account, its acquisition source then. */
  sources: Map<string, KeptSource>
  /** Their segments up to the time of the report, in batches. */
  segments(): AsyncGenerator<Segment[]>
  segmentsOf(accounts: string[]): Promise<Segment[]>
}

/** Null: the report does not follow a closing, or nothing changed since. */
export async function openKept(db: Db, { tenantId, closing, asOf }: ReportQuestion): Promise<KeptAccounts | null> {
  if (!closing) return null
  const sources = await keptSources(db, tenantId, closing)
  if (sources.size === 0) return null
  const isStarted = ({ from }: Segment) => from <= asOf.getTime()
  return {
    sources,
    async *segments() {
      for await (const batch of keptSegments(db, tenantId, closing)) yield batch.filter(isStarted)
    },
    segmentsOf: async accounts => (await keptSegmentsOf(db, tenantId, closing, accounts)).filter(isStarted),
  }
}

/** Replaces the segments of accounts that changed since the closing. */
export async function* withKept(
  segments: AsyncIterable<Segment[]>,
  kept: KeptAccounts | null,
  isWanted: (segment: Segment) => boolean = () => true,
): AsyncGenerator<Segment[]> {
  if (kept === null) return yield* segments
  for await (const batch of segments) yield batch.filter(({ account }) => !kept.sources.has(account))
  for await (const batch of kept.segments()) yield batch.filter(isWanted)
}
