import type { Entry } from '../../domain/entries/entry.ts'
import type { Connected } from './access.ts'
import { type Facts, readFacts, unpack, unreadableEntry } from './messages.ts'
import type { PassedMessage } from './passed-over.ts'
import { partSubject, subjectOf } from './settings.ts'

/** A message of a partition, read. */
export type Message = {
  seq: number
  at: Date
  facts: Facts
  entries: Entry[]
  storedBytes: number[]
  /** Parts of it are not there: it was read elsewhere meanwhile, or they have not arrived at that server yet. */
  isIncomplete?: true
  /** Nothing in it can be read: the position moves past it. */
  passedOver?: PassedMessage
}

// Of what bears no entries; some thousands of such messages are not to be fetched at once.
const PASSED_OVER_BYTES = 1_000
// Parts are acknowledged before the message that names them: where the stream's leader does not have them by then, nobody does.
const PARTS_LATE_MS = 60_000

/** The first message of a partition at or after a number; null: there is none yet. */
export async function getNext(
  connected: Connected,
  stream: string,
  partition: number,
  from: number,
): Promise<Message | null> {
  const found = await connected.manager.direct.getMessage(stream, {
    next_by_subj: subjectOf(stream, partition),
    seq: Math.max(1, from),
  })
  if (found === null) return null
  const facts = readFacts(found.header, found.time.getTime())
  const head = { seq: found.seq, at: found.time, facts }
  const passed = (reason: string, payload: Uint8Array) =>
    passedOverMessage(head, { subject: found.subject, reason, payload })
  if (facts.fault === 'foreign') return passed('it is not from Kontor', found.data)
  if (facts.fault === 'unreadable') return passed('what it says of itself cannot be read', found.data)
  const payload = facts.parts > 0 ? await readParts(connected, stream, partition, facts) : found.data
  if (payload === null && Date.now() - found.time.getTime() > PARTS_LATE_MS)
    return passed(`not all of its ${facts.parts} parts are there`, found.data)
  if (payload === null) return { ...head, entries: [], storedBytes: [], isIncomplete: true }
  try {
    return { ...head, ...unpack(payload, facts) }
  } catch {
    // What it failed with may quote what was sent.
    return passed('it does not hold entries as this version knows them', payload)
  }
}

/** A message of one tenant becomes an entry, and so a dead letter; of what is Kontor's otherwise, the payload is kept. */
function passedOverMessage(
  head: Pick<Message, 'seq' | 'at' | 'facts'>,
  { subject, reason, payload }: { subject: string; reason: string; payload: Uint8Array },
): Message {
  const { seq, at, facts } = head
  const isForeign = facts.fault === 'foreign'
  const hasTenant = facts.tenants.length === 1
  const words = `message ${seq} of ${subject} cannot be read: ${reason}`
  const entries = hasTenant ? [unreadableEntry(facts, { words, payload })] : []
  return {
    ...{
      ...head,
      entries,
      storedBytes: entries.length > 0 ? [entries[0]!.body.length] : [PASSED_OVER_BYTES],
    },
    passedOver: { seq, at, subject, reason, isForeign, payload: isForeign || hasTenant ? null : payload },
  }
}

/** Null: not all of them are there, as the stream's leader knows too. */
async function readParts(
  { manager }: Connected,
  stream: string,
  partition: number,
  { id, parts }: Facts,
): Promise<Uint8Array | null> {
  const found: Uint8Array[] = []
  for (let part = 0; part < parts; part++) {
    const query = { last_by_subj: partSubject(stream, partition, id, part) }
    const message =
      (await manager.direct.getMessage(stream, query)) ?? (await manager.streams.getMessage(stream, query))
    if (message === null) return null
    found.push(message.data)
  }
  return Buffer.concat(found)
}
