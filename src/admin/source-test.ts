import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { type Body, normalize, openBody } from '../domain/events/normalize/normalize.ts'
import { itemId } from '../domain/ids.ts'
import { testEvent } from '../domain/samples.ts'
import { OpenObject } from '../domain/shapes.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { formatValidationError, type ValidationError } from '../domain/validation-error.ts'
import { eventEntry } from '../intake/accept.ts'
import { inboundContext } from '../intake/inbound.ts'
import type { Log } from '../log/log.ts'
import { databaseNow } from '../postgres/database.ts'
import { findArchived, findReceipts } from '../store/inbound/receipts.ts'
import { findSource, type Source } from '../store/inbound/sources.ts'
import { type Actor, canSee, requireRole } from './actor.ts'
import { recordChange } from './audit.ts'
import { notFound, throwIfInvalid } from './error.ts'
import { ReceiptView, receiptView } from './receipts.ts'

/** `body`: JSON to send instead of the sample. `headers` are added to those of the sample. */
type SourceTestOptions = {
  body?: string | undefined
  headers?: Record<string, string> | undefined
  waitMs?: number | undefined
}

const WAIT_MS = 10_000
const POLL_EVERY_MS = 50

/**
 * Sends an event through the real path, without the check of credentials, and reports each step. The built-in sample is
 * a test event, which does not count in any total. A custom body or header could report a sale or delete a contact in the
 * name of the source: it requires the role admin, and the event counts like any other.
 */
export function sourceTestAdmin({ pool, log, actor }: { pool: pg.Pool; log: Log; actor: Actor }) {
  return {
    async test(id: string, options: SourceTestOptions = {}): Promise<SourceTest> {
      const source = await findSource(pool, id)
      if (source === null || !canSee(actor, source.tenantId)) throw notFound('source', id)
      const isSample = options.body === undefined && Object.keys(options.headers ?? {}).length === 0
      if (!isSample) requireRole(actor, 'admin')
      const sent = buildSample(source, options)
      const steps: SourceTest['steps'] = []
      const test: SourceTest = { source_config_id: id, ok: false, sent, steps, receipts: [], archived: [] }
      const report = (step: SourceTest['steps'][number]['step'], ok: boolean, detail: string) =>
        steps.push({ step, ok, detail })

      if (!source.enabled) {
        report('source', false, 'The source is disabled: a real request gets status 403.')
        return test
      }
      report('source', true, `A source of type ${source.type}${source.preset ? ` with preset ${source.preset}` : ''}.`)
      const body = openBody(sent.body)
      const now = await databaseNow(pool)
      const facts = { ip: null, headers: sent.headers, signature: null, ...(isSample && { test: true as const }) }
      const context = inboundContext(source, facts)
      const { inspection, append } = eventEntry(source.tenantId, body, context, now)
      if (inspection.accepted.length === 0) {
        const status = inspection.isTooLarge ? 413 : 400
        report('normalize', false, `A real request gets status ${status}: ${formatErrors(body, inspection.errors)}.`)
        return test
      }
      const { entry } = append
      const [event] = normalize({ entryId: entry.id, receivedAt: now, body: entry.body, context }).events
      report(
        'normalize',
        true,
        `Parsed as event type ${JSON.stringify(event!.eventType)}, id ${JSON.stringify(event!.inboundEventId)}.`,
      )

      // Before the append, so that no event is sent without an audit row.
      const after = { event: entry.id, event_type: event!.eventType, sent: isSample ? 'sample' : 'custom' }
      await recordChange(pool, actor, { action: 'source.test', target: id, tenantId: source.tenantId, after })
      await log.append([append])
      report('accept', true, `Stored in the log as ${entry.id}: a real request gets status 200.`)

      const eventId = itemId(entry.id, event!.index)
      const receipts = await awaitReceipts(pool, id, eventId, options.waitMs ?? WAIT_MS)
      test.receipts = receipts.map(receiptView)
      const last = receipts.at(-1)
      if (!last) {
        report(
          'process',
          false,
          'No worker has processed the event yet. Check that a server with the surface "worker" is running.',
        )
        return test
      }
      report(
        'process',
        last.outcome !== 'dead_letter',
        `The receipt has the outcome ${last.outcome}${last.detail ? ` (${last.detail})` : ''}.`,
      )
      const archived = await findArchived(pool, source.tenantId, eventId)
      if (archived) {
        test.archived = [JSON.parse(archived.result)]
        report('archive', true, `The result is archived as ${eventId}.`)
      }
      test.ok = steps.every(({ ok }) => ok)
      return test
    },
  }
}

function formatErrors(body: Body, errors: ValidationError[]): string {
  if (body.error !== null) return body.error
  return errors.map(formatValidationError).join('; ') || 'the body is empty'
}

async function awaitReceipts(pool: pg.Pool, sourceId: string, eventId: string, waitMs: number) {
  const deadline = performance.now() + waitMs
  for (;;) {
    const receipts = await findReceipts(pool, sourceId, eventId)
    if (receipts.length > 0 || performance.now() >= deadline) return receipts
    await sleep(POLL_EVERY_MS)
  }
}

function buildSample(source: Source, { body, headers = {} }: SourceTestOptions): SourceTest['sent'] {
  throwIfInvalid(
    Object.entries(headers).some(([name, value]) => name !== name.toLowerCase() || typeof value !== 'string')
      ? [{ pointer: '/headers', message: 'must have lower-case names and string values' }]
      : [],
  )
  const sample = testEvent(source.type === 'cdp' ? 'cdp' : (source.preset ?? 'kontor'), new Date())
  const own = { 'content-type': 'application/json', 'user-agent': 'kontor source test' }
  return { headers: { ...own, ...sample.headers, ...headers }, body: body ?? JSON.stringify(sample.body) }
}

const Headers = Type.Record(Type.String(), Type.String())

/** The receipts and archived results of a sample event. */
export const SourceTest = Type.Object(
  {
    source_config_id: Type.String(),
    ok: Type.Boolean(),
    sent: Type.Object({ headers: Headers, body: Type.String() }, { description: 'The request' }),
    steps: Type.Array(
      Type.Object({
        step: Type.Enum(['source', 'normalize', 'accept', 'process', 'archive']),
        ok: Type.Boolean(),
        detail: Type.String(),
      }),
      { description: 'In the order of processing' },
    ),
    receipts: Type.Array(ReceiptView),
    archived: Type.Array(OpenObject()),
  },
  { title: 'SourceTest', description: 'The receipts and archived results of a sample event' },
)

export type SourceTest = Static<typeof SourceTest>
