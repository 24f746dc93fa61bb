import { encodeCursor } from '../../src/http/paging.ts'
import { loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'

const EVENTS = 1_000_000
const DEPTH = 999_000

/** The first page of events, and a page one million rows later. */
export const eventsList: Scenario = async options => {
  const service = await startService(options)
  try {
    await fillEvents(service)
    const reading = { connections: 8, seconds: options.seconds / 2, authorization: service.private }
    const page = (query: string) => [{ method: 'GET' as const, path: `/v1/events?limit=50${query}` }]
    const first = await loadService(service, { ...reading, traffic: page('') })
    const deep = await loadService(service, {
      ...reading,
      traffic: page(`&cursor=${await cursorAt(service)}`),
    })
    return {
      facts: { first, deep },
      bars: [
        { what: 'p50 of a deep page / p50 of the first', value: deep.p50Ms / first.p50Ms, atMost: 1.5 },
        { what: 'errors', value: first.refused + first.broken + deep.refused + deep.broken, atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}

/** Inserts rows directly, because ingestion is not measured here. */
export async function fillEvents(service: Service): Promise<void> {
  await service.pool.query(
    `insert into events (tenant_id, id, occurred_at, received_at, event_type, conversion, source, visitor, payload)
     select $1, gen_random_uuid(), at, at, 'page_view', false, 'tracking', 'visitor-' || n % 5000,
            jsonb_build_object('page', 'https://shop.example/' || n)
     from (select n, date_trunc('milliseconds', now() - n * interval '1 second') as at
           from generate_series(1, ${EVENTS}) n) numbered`,
    [service.tenantId],
  )
  await service.pool.query('vacuum analyze events')
}

async function cursorAt(service: Service): Promise<string> {
  const { rows } = await service.pool.query<{ occurred_at: Date; id: string }>(
    `select occurred_at, id from events where tenant_id = $1 and not conversion
     order by occurred_at desc, id desc offset ${DEPTH} limit 1`,
    [service.tenantId],
  )
  return encodeCursor([rows[0]!.occurred_at.toISOString(), rows[0]!.id])
}
