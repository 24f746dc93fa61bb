import { agendaHorizon, agendaNeededUntil, agendaOf, goesOn } from '../../domain/billing/agenda.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import type { Db } from '../../postgres/database.ts'
import { noteSubscriptions, replaceAgenda, shortAgendas } from '../../store/billing/agenda.ts'
import { keyText, type ObjectKey } from '../../store/billing/keys.ts'
import { lockSubscriptions, segmentsFrom } from '../../store/billing/subscriptions.ts'

/** Writes what these subscriptions are expected to do, and that they were seen. They are locked. */
export async function writeAgenda(
  db: Db,
  subscriptions: (ObjectKey & { segments: Segment[] })[],
  now: number,
): Promise<void> {
  const horizon = agendaHorizon(now)
  await replaceAgenda(
    db,
    subscriptions,
    subscriptions.flatMap(({ tenantId, id, segments }) =>
      agendaOf(segments, now, horizon).map(entry => ({ tenantId, id, entry })),
    ),
  )
  await noteSubscriptions(
    db,
    subscriptions.map(({ tenantId, id, segments }) => ({
      tenantId,
      id,
      agendaUntil: goesOn(segments, horizon) ? horizon : null,
    })),
  )
}

/** Fills in what has come within reach, for some of the subscriptions that need it. Returns for how many. */
export async function extendAgenda(db: Db, now: number, limit: number): Promise<number> {
  const keys = await shortAgendas(db, agendaNeededUntil(now), limit)
  if (keys.length === 0) return 0
  await lockSubscriptions(db, keys, [])
  const segments = Map.groupBy(await segmentsFrom(db, keys, now), keyText)
  await writeAgenda(
    db,
    keys.map(key => ({ ...key, segments: (segments.get(keyText(key)) ?? []).map(({ segment }) => segment) })),
    now,
  )
  return keys.length
}
