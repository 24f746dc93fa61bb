import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { addMonths } from '../domain/billing/account.ts'
import { stripNamespaces } from '../domain/billing/namespace.ts'
import { toMajor } from '../domain/money.ts'
import { NullableText, Timestamp } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { startOfDayIn } from '../domain/time-zone.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { type Db, databaseNow, inTransaction } from '../postgres/database.ts'
import { lockLedger } from '../postgres/locks.ts'
import {
  type Closing,
  countRestatements,
  deleteClosing,
  insertClosing,
  listClosings,
  listRestatements,
} from '../store/billing/closings.ts'
import { appliedPolicy, newestPolicy } from '../store/billing/policies.ts'
import { type Actor, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError, throwIfInvalid } from './error.ts'

/** Months whose figures are kept as they were when the month was closed. */
export function bookAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    /** Closing a closed month again changes nothing. */
    async close(idOrName: string, month: string): Promise<ClosedMonth> {
      requireMonth(month)
      const { id } = await requireTenant(pool, actor, idOrName)
      await waitForPolicy(pool, id)
      return inTransaction(pool, async tx => {
        await lockLedger(tx, id)
        const known = await findClosing(tx, id, month)
        if (known) return monthView(known, await countRestatements(tx, id))
        await insertClosing(tx, id, { ...(await readClosing(tx, id, month)), closedBy: actor.name })
        const closed = monthView((await findClosing(tx, id, month))!, new Map())
        await recordChange(tx, actor, { ...changeOf(id, 'books.close'), before: null, after: closed })
        return closed
      })
    },
    /** Deletes the figures and the list of restatements of the closing. */
    async reopen(idOrName: string, month: string): Promise<ClosedMonth> {
      requireMonth(month)
      const { id } = await requireTenant(pool, actor, idOrName)
      return inTransaction(pool, async tx => {
        await lockLedger(tx, id)
        const closing = await findClosing(tx, id, month)
        if (!closing) throw new AdminError('not_found', 'month_not_closed', `${month} is not closed.`)
        const closed = monthView(closing, await countRestatements(tx, id))
        await deleteClosing(tx, id, closing)
        await recordChange(tx, actor, { ...changeOf(id, 'books.reopen'), before: closed, after: null })
        return closed
      })
    },
    async status(idOrName: string, page: BooksPage): Promise<BooksView> {
      if (page.month !== undefined) requireMonth(page.month)
      const { id } = await requireTenant(pool, actor, idOrName)
      return booksView(pool, id, page)
    },
  }
}

const MONTH_PATTERN = '^[1-9][0-9]{3}-(0[1-9]|1[0-2])$'

function requireMonth(month: string): void {
  const message = 'must be a year and a month, for example 2026-10'
  if (!new RegExp(MONTH_PATTERN).test(month)) throwIfInvalid([{ pointer: '/month', message }])
}

const POLICY_WAIT_MS = 10_000

/** A policy that was just changed is applied within seconds, unless no worker runs. */
async function waitForPolicy(db: Db, tenantId: number): Promise<void> {
  const deadline = performance.now() + POLICY_WAIT_MS
  while ((await pendingPolicy(db, tenantId)) !== null && performance.now() < deadline) await sleep(100)
}

/** The newest version of the policy, if the ledger is not computed with it yet. */
async function pendingPolicy(db: Db, tenantId: number): Promise<number | null> {
  const { version } = await newestPolicy(db, tenantId)
  return version === (await appliedPolicy(db, tenantId)).version ? null : version
}

async function readClosing(tx: Db, tenantId: number, month: string) {
  const policy = await appliedPolicy(tx, tenantId)
  const version = await pendingPolicy(tx, tenantId)
  if (version !== null) {
    const message = `Version ${version} of the policy is not applied yet. Close the month when \`kontor policy show\` prints "applied": true.`
    throw new AdminError('conflict', 'policy_not_applied', message)
  }
  const [starts, ends] = [0, 1].map(later => startOfDayIn(policy.timeZone, addMonths(`${month}-01`, later)))
  if (ends! > (await databaseNow(tx))) {
    const message = `${month} has not ended in the time zone ${policy.timeZone}. It ends at ${ends!.toISOString()}.`
    throw new AdminError('conflict', 'month_not_ended', message)
  }
  return { month, starts: starts!, ends: ends!, policy }
}

function changeOf(tenantId: number, action: string) {
  return { action, target: publicTenantId(tenantId), tenantId }
}

export type BooksPage = { month?: string | undefined; page: number; pageSize: number }

/** The closed months, and the changes of their figures since. */
export async function booksView(
  db: Db,
  tenantId: number,
  { month, page, pageSize: wanted }: BooksPage,
): Promise<BooksView> {
  const pageSize = Math.min(wanted, MAX_PAGE_SIZE)
  const closings = await listClosings(db, tenantId)
  const counts = await countRestatements(db, tenantId)
  const months = closings.map(closing => monthView(closing, counts))
  const count = months.reduce(
    (sum, own) => sum + (month === undefined || own.month === month ? own.restatements : 0),
    0,
  )
  const slice = { offset: (page - 1) * pageSize, limit: pageSize }
  const rows = slice.offset < count ? await listRestatements(db, tenantId, month ?? null, slice) : []
  return {
    months,
    results: rows.map(row => ({
      month: row.month,
      customer: stripNamespaces(row.customer),
      currency: row.currency,
      amount: toMajor(row.amount, row.currency),
      event_id: row.eventId,
      received_at: row.receivedAt.toISOString(),
    })),
    ...{ page, page_size: pageSize, count, pages: Math.ceil(count / pageSize) },
  }
}

async function findClosing(db: Db, tenantId: number, month: string): Promise<Closing | null> {
  return (await listClosings(db, tenantId)).find(known => known.month === month) ?? null
}

function monthView({ month, closedAt, closedBy, policy, number }: Closing, counts: Map<number, number>): ClosedMonth {
  return {
    month,
    closed_at: closedAt.toISOString(),
    closed_by: closedBy,
    time_zone: policy.timeZone,
    policy_version: policy.version,
    restatements: counts.get(number) ?? 0,
  }
}

const Month = Type.String({ pattern: MONTH_PATTERN, description: 'YYYY-MM', examples: ['2026-10'] })

const MAX_PAGE_SIZE = 100

export const BooksQuery = {
  month: Month,
  page: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1, description: 'Page of the restatements' }),
  page_size: Type.Integer({
    minimum: 1,
    default: 50,
    description: `Rows per page; larger values are reduced to ${MAX_PAGE_SIZE}`,
  }),
}

const EXAMPLE = {
  month: '2026-10',
  closed_at: '2026-11-03T09:00:00.000Z',
  closed_by: 'cli:ada',
  time_zone: 'UTC',
  policy_version: 1,
  restatements: 1,
}

export const ClosedMonth = Type.Object(
  {
    month: Month,
    closed_at: Timestamp,
    closed_by: Type.String(),
    time_zone: Type.String({ description: 'The time zone of the month' }),
    policy_version: Type.Integer({ description: 'The version of the policy by which its figures were computed' }),
    restatements: Type.Integer({ description: 'The number of changes since the month was closed' }),
  },
  { title: 'ClosedMonth', description: 'A month whose figures are kept', examples: [EXAMPLE] },
)

export type ClosedMonth = Static<typeof ClosedMonth>

export const BooksView = Type.Object(
  {
    months: Type.Array(ClosedMonth, { description: 'Newest first' }),
    results: Type.Array(
      Type.Object({
        month: Month,
        customer: Type.String(),
        currency: Type.String(),
        amount: Type.Number({
          description:
            'The change of the customer’s MRR at the end of the month; 0 if only movements within the month changed',
        }),
        event_id: NullableText,
        received_at: Timestamp,
      }),
      { description: 'Restatements, newest first' },
    ),
    page: Type.Integer(),
    page_size: Type.Integer(),
    count: Type.Integer(),
    pages: Type.Integer(),
  },
  {
    title: 'Books',
    description: 'Closed months, and the changes in them since',
    examples: [
      {
        months: [EXAMPLE],
        results: [
          {
            month: '2026-10',
            customer: 'cus_42',
            currency: 'EUR',
            amount: 49,
            event_id: '018f3c2a-9d1e-7a40-8c55-3b1f2d4e6a70',
            received_at: '2026-11-05T08:12:00.000Z',
          },
        ],
        page: 1,
        page_size: 50,
        count: 1,
        pages: 1,
      },
    ],
  },
)

export type BooksView = Static<typeof BooksView>
