import { handleInFile } from '../../domain/providers/shops.ts'
import type { RecordChange } from '../../domain/records/records.ts'
import { type Handle, productsOfHandles } from '../../store/records/handles.ts'
import { lockRecordTypes } from '../../store/records/tombstones.ts'
import type { Transaction } from '../unit.ts'
import type { Change } from './change.ts'
import { locksFor } from './locks.ts'

/**
 * Rows of a shop's file that go by a handle, as the file has no ids, and whose product the shop's webhooks have told under its
 * id: written too, it would stand there twice. What webhooks tell is newer than any file, whatever the file's time: files
 * are copied. Of a product that was deleted, a row that is newer is another product.
 */
export async function rowsToldByShops(
  client: Transaction['client'],
  changes: Change<RecordChange>[],
): Promise<Set<Change>> {
  const named = new Map<Change, Handle>()
  for (const change of changes) {
    const handle = change.work.op === 'write' ? handleInFile(change.work) : null
    if (handle !== null) named.set(change, { tenantId: change.entry.tenantId, handle })
  }
  if (named.size === 0) return new Set()
  // Before it is looked: a webhook that is under way would neither be seen nor see these rows.
  await lockRecordTypes(client, locksFor(changes))
  const distinct = new Map([...named.values()].map(handle => [handleText(handle), handle]))
  const known = new Map(
    (await productsOfHandles(client, [...distinct.values()])).map(row => [handleText(row), row]),
  )
  const isTold = ([change, handle]: [Change, Handle]) => {
    const product = known.get(handleText(handle))
    return product !== undefined && (product.isLive || product.toldAt >= change.work.sourceUpdatedAt)
  }
  return new Set([...named].filter(isTold).map(([change]) => change))
}

function handleText({ tenantId, handle }: Handle): string {
  return `${tenantId} ${handle}`
}
