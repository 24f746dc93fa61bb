import { setTimeout as sleep } from 'node:timers/promises'
import { type Append, LogUnavailable } from '../log.ts'
import { isFull, reasonOf, StreamFull } from './errors.ts'
import type { Link, Linked } from './link.ts'
import { type Packed, pack, writeFacts } from './messages.ts'
import { partSubject, subjectOf } from './settings.ts'
import { idAt } from './stream.ts'

// A server of a cluster that fails is replaced within two to four seconds.
const DEADLINE_MS = 5_000
// Where the last one came to nothing, the next is not waited for as long: requests would pile up.
const DEADLINE_WHEN_SILENT_MS = 1_000
const ATTEMPT_MS = 2_000
const AGAIN_MS = 100

type Publisher = {
  /** The stream, as soon as it can be written to; not for longer than an acknowledgement is waited for. */
  reach(): Promise<Linked>
  /** Resolves when the stream has acknowledged all of it. */
  publish(partition: number, appends: Append[]): Promise<void>
}

export function openPublisher(link: Link, stream: string): Publisher {
  let isSilent = false
  const deadlineMs = () => (isSilent ? DEADLINE_WHEN_SILENT_MS : DEADLINE_MS)

  async function reach(): Promise<Linked> {
    try {
      return link.writable() ?? (await link.writableWithin(deadlineMs()))
    } catch (error) {
      isSilent = true
      throw error
    }
  }

  /** An unclear outcome is cleared by publishing again under the same id: what is there already is not added twice. */
  async function send(subject: string, payload: Uint8Array, id: string, headersOf: HeadersOf): Promise<void> {
    const deadline = performance.now() + deadlineMs()
    for (;;) {
      const left = deadline - performance.now()
      try {
        const linked = link.writable() ?? (await link.writableWithin(Math.max(1, left)))
        const timeout = Math.max(1, Math.min(ATTEMPT_MS, deadline - performance.now()))
        const headers = headersOf(linked)
        const options = { msgID: id, timeout, retries: 0, expect: { streamName: stream } }
        const ack = await linked.js.publish(subject, payload, { ...options, ...(headers && { headers }) })
        // Around a change of leaders a server may remember an id whose message came to nothing.
        // What was read and purged meanwhile is not there either: then the outcome stays unclear.
        if (ack.duplicate && (await idAt(linked, stream, ack.seq)) !== id)
          throw new Error(`message ${ack.seq} is not the one that it was called a duplicate of`)
        isSilent = false
        return
      } catch (error) {
        if (isFull(error)) throw new StreamFull(`The stream ${stream} is full`, { cause: error })
        link.renew()
        if (performance.now() + AGAIN_MS < deadline) {
          await sleep(AGAIN_MS)
          continue
        }
        isSilent = true
        throw new LogUnavailable(`NATS did not acknowledge: ${reasonOf(error)}`, { cause: error })
      }
    }
  }

  async function sendPacked(partition: number, { payload, facts, parts }: Packed): Promise<void> {
    // What it names is there before it is: whoever reads it finds all of it.
    for (const [i, part] of parts.entries())
      await send(partSubject(stream, partition, facts.id, i), part, `${facts.id}.${i}`, () => null)
    await send(subjectOf(stream, partition), payload, facts.id, ({ packages }) => {
      const headers = packages.headers()
      writeFacts(headers, facts)
      return headers
    })
  }

  return {
    reach,
    async publish(partition, appends) {
      const { connection, stream: known } = await reach()
      // Of a connection that has just broken the client knows nothing any more.
      const maxPayload = connection.info?.max_payload ?? known.maxPayload
      for (const packed of pack(appends, maxPayload)) await sendPacked(partition, packed)
    },
  }
}

type HeadersOf = (linked: Linked) => ReturnType<Linked['packages']['headers']> | null
