import { buildAgenda } from '../domain/billing/attention.ts'
import type { Slice } from '../domain/list-slices.ts'
import type { Db } from '../postgres/database.ts'
import { runningSegments } from '../store/reports/accounts.ts'
import {
  type AgendaKind,
  type AgendaRow,
  agendaCounts,
  agendaReaches,
  agendaSlice,
} from '../store/reports/attention.ts'
import type { Narrowed } from './ledger.ts'
import { daysFrom, type ReportQuestion } from './question.ts'

/** What is due within so many days, by kind. */
export type Agenda = {
  counts: Record<AgendaKind, number>
  slice(kind: AgendaKind, slice: Slice): Promise<AgendaRow[]>
}

/**
 * The agenda that is kept speaks of the time from now on; of any other time, and of what a filter leaves, one is made
 * from the segments.
 */
export async function openAgenda(
  db: Db,
  question: ReportQuestion,
  days: number,
  narrowed: Narrowed | null,
): Promise<Agenda> {
  const { tenantId, asOf, now } = question
  const until = daysFrom(asOf, days)
  if (narrowed === null && asOf >= now && (await agendaReaches(db, tenantId, until))) {
    const counts = await agendaCounts(db, question, until)
    return {
      counts,
      slice: (kind, slice) => agendaSlice(db, question, { kind, until, count: counts[kind] }, slice),
    }
  }
  return agendaOfSegments(db, question, until, narrowed)
}

async function agendaOfSegments(
  db: Db,
  question: ReportQuestion,
  until: Date,
  narrowed: Narrowed | null,
): Promise<Agenda> {
  const rows: Record<AgendaKind, AgendaRow[]> = { charge: [], renewal: [], cancellation: [] }
  const asOf = question.asOf.getTime()
  for await (const segments of runningSegments(db, question)) {
    for (const segment of segments) {
      if (narrowed && !narrowed.holds(segment.subscriptionId, question.asOf)) continue
      for (const entry of buildAgenda([segment], asOf, until.getTime())) {
        // what is known only later is not expected yet
        if (entry.knownFrom !== null) continue
        const { kind, dueAt, body } = entry
        rows[kind].push({ subscriptionId: segment.subscriptionId, dueAt, body })
      }
    }
  }
  const order = (a: AgendaRow, b: AgendaRow) =>
    a.dueAt - b.dueAt || (a.subscriptionId < b.subscriptionId ? -1 : 1)
  for (const list of Object.values(rows)) list.sort(order)
  return {
    counts: {
      charge: rows.charge.length,
      renewal: rows.renewal.length,
      cancellation: rows.cancellation.length,
    },
    slice: async (kind, { offset, limit }) => rows[kind].slice(offset, offset + limit),
  }
}
