import type { NormalizedEvent } from '../../domain/events/events.ts'
import type { ShopChange, ShopRecord } from '../../domain/providers/shops/shop.ts'
import type { RecordChange } from '../../domain/records/records.ts'
import type { Change } from '../records/change.ts'

/** One thing that an event tells of records. */
export type ReportedChange = { tenantId: number; event: NormalizedEvent; change: ShopChange }

export function entryOf({ tenantId, event }: ReportedChange): Change['entry'] {
  return { id: event.id, tenantId, receivedAt: event.receivedAt }
}

export function writeOf(reported: ReportedChange, { entityType, id, fields, source }: ShopRecord): Change {
  const own = JSON.stringify(fields)
  const dataText = `${own.slice(0, -1)}${own === '{}' ? '' : ','}"source":${source}}`
  const work: RecordChange = {
    ...{ op: 'write', entityType, id, externalId: null, sourceUpdatedAt: reported.change.at },
    ...{ data: fields, dataText },
  }
  return { entry: entryOf(reported), work }
}
