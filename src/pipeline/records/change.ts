import type { Entry } from '../../domain/entries/entry.ts'
import type { RecordChange } from '../../domain/records/records.ts'

/** A change of a record, and what brought it: an entry of its own, or an event. */
export type Change<Work extends RecordChange = RecordChange> = {
  entry: Pick<Entry, 'id' | 'tenantId' | 'receivedAt'>
  work: Work
}
