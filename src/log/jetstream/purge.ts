import { timeOfId } from '../../domain/ids.ts'
import type { Cursor } from './cursors.ts'
import type { Linked } from './link.ts'
import { getNext } from './next-message.ts'
import { partSubject, subjectOf } from './settings.ts'
import { refuseTaken } from './stream.ts'

// Parts come before the message that names them, by a few seconds at the most.
const PARTS_AHEAD_MS = 600_000

/** Takes out of the stream what was read. */
export async function purgeRead(linked: Linked, stream: string, cursors: Cursor[]): Promise<void> {
  await refuseTaken(linked, stream)
  for (const cursor of cursors) {
    if (cursor.seq > 1)
      await linked.manager.streams.purge(stream, {
        filter: subjectOf(stream, cursor.partition),
        seq: cursor.seq,
      })
    await purgeParts(linked, stream, cursor)
  }
}

/** Parts that nobody names any more: whoever was to publish that message, or to purge them, ended before it did. */
async function purgeParts(linked: Linked, stream: string, { partition, seq }: Cursor): Promise<void> {
  const { manager } = linked
  const { state } = await manager.streams.info(stream, {
    subjects_filter: partSubject(stream, partition, '*', '*'),
  })
  const groups = new Set(Object.keys(state.subjects ?? {}).map(subject => subject.split('.').at(-2)!))
  if (groups.size === 0) return
  const unread = await getNext(linked, stream, partition, seq)
  const before = (unread?.at.getTime() ?? Date.now()) - PARTS_AHEAD_MS
  for (const group of groups)
    if (timeOfId(group).getTime() < before)
      await manager.streams.purge(stream, { filter: partSubject(stream, partition, group, '*') })
}
