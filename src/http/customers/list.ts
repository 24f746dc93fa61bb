import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { normalizeCountry } from '../../domain/billing/fields.ts'
import { stripNamespaces } from '../../domain/billing/namespace.ts'
import { CUSTOMER_STATUSES, type CustomerStatus, NEW_CUSTOMER_DAYS, wordsOf } from '../../domain/customers/customers.ts'
import { publicProfileId } from '../../domain/identity/identifiers.ts'
import { storableText } from '../../domain/json/json.ts'
import { CURRENCY_FORMAT, knownCurrency, parseDecimal, toMajor } from '../../domain/money.ts'
import type { Scope } from '../../domain/tenants/keys.ts'
import { DAY_MS } from '../../domain/time.ts'
import { WHOLE_DAY } from '../../domain/time-zone.ts'
import { type Static, Type } from '../../domain/typebox.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import { CUSTOMER_SORTS, type CustomerPage, type CustomerRow, listCustomers } from '../../store/customers/list.ts'
import { hasOutdatedCustomers } from '../../store/customers/refresh.ts'
import type { App } from '../app.ts'
import { type Caller, requireScope } from '../auth.ts'
import {
  decodeCursor,
  isTimestamp,
  listsAsCsv,
  PagedList,
  pageBody,
  pageParameters,
  readPage,
  timeWindow,
} from '../paging.ts'
import { problems } from '../problems.ts'
import { waitSeconds } from '../wait.ts'
import { CustomerBody } from './schemas.ts'

const SEGMENTS = ['new', ...CUSTOMER_STATUSES] as const
/** The value of `channel` for people of whom nothing says where they came from. */
const UNATTRIBUTED = 'unattributed'

const text = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 200, description }))

/** The query parameters that select and order customers. */
export const customerFilters = {
  q: text(
    'Search words, separated by spaces. Each must be the beginning of a word in the name, company or e-mail address. At most 20,000 matches are considered',
  ),
  segment: Type.Optional(
    Type.Enum([...SEGMENTS], {
      description: `A status, or new: people whose first purchase or payment was in the last ${NEW_CUSTOMER_DAYS} days`,
    }),
  ),
  channel: text(`Only this channel; ${UNATTRIBUTED}: without a channel`),
  country: text('Only this country'),
  plan: text('Only people with a subscription to this plan'),
  profile_id: Type.Optional(
    Type.String({ pattern: '^prof_[0-9]{1,15}$', description: 'Only this person', examples: ['prof_12'] }),
  ),
  since: Type.Optional(
    Type.String({ format: 'timestamp', description: 'Only people whose first touch was at or after this time' }),
  ),
  until: Type.Optional(
    Type.String({
      format: 'timestamp',
      description: `Only people whose first touch was at or before this time. ${WHOLE_DAY}`,
    }),
  ),
  sort: Type.Enum([...CUSTOMER_SORTS], { default: 'last_seen_at', description: 'The field that orders the list' }),
  order: Type.Optional(
    Type.Enum(['asc', 'desc'], { description: 'Default: asc for name, otherwise desc, the largest or newest first' }),
  ),
  currency: Type.Optional(
    Type.String({
      description: 'Only people with an amount in this currency. Required to sort by revenue or mrr',
      examples: ['EUR'],
    }),
  ),
}

const CustomerQuery = Type.Object({ ...customerFilters, ...pageParameters })
type CustomerQuery = Static<typeof CustomerQuery>
export type CustomerFilters = Omit<CustomerQuery, keyof typeof pageParameters>

export function customerRoute(app: App, { pool, now }: { pool: pg.Pool; now: () => Date }): void {
  app.get(
    '/v1/customers',
    {
      config: { scope: 'contacts:read' },
      onSend: listsAsCsv,
      schema: {
        tags: ['Customers'],
        summary: 'List customers',
        description:
          'People with a purchase, a subscription or a contact. A change appears within seconds. With `Accept: text/csv` the rows are returned as CSV.',
        querystring: CustomerQuery,
        response: { 200: PagedList(CustomerBody) },
      },
    },
    async ({ query, caller, headers }) => {
      await untilCurrent(pool, caller.tenantId, headers.prefer)
      const list = await customerList(pool, query, { caller, now: now() })
      const isThisOrder = (part: string) => part === orderName(list)
      const cursor = decodeCursor(query.cursor, isThisOrder, sortCheck(list.sort), isProfile)
      const after = cursor && { value: cursor[1], profile: Number(cursor[2]) }
      const page = await readPage(
        query,
        limit => listCustomers(pool, caller.tenantId, { ...list, after, limit }),
        ({ sortValue, profile }) => [orderName(list), sortValue, String(profile)],
      )
      return pageBody({ ...page, rows: page.rows.map(row => customerBody(row, caller.key.scopes)) })
    },
  )
}

/** What the query parameters ask for. An order by an amount requires the scope of the amount. */
export async function customerList(
  pool: pg.Pool,
  query: CustomerFilters,
  { caller, now }: { caller: Caller; now: Date },
): Promise<Omit<CustomerPage, 'limit' | 'after'>> {
  const { sort, segment } = query
  const { timeZone } = await appliedPolicy(pool, caller.tenantId)
  if (sort === 'revenue') requireScope(caller, 'conversions:read')
  if (sort === 'mrr') requireScope(caller, 'subscriptions:read')
  const isByAmount = sort === 'revenue' || sort === 'mrr'
  const currency = knownCurrency(query.currency)
  if (currency === null && (isByAmount || query.currency !== undefined))
    throw problems.invalid([{ pointer: '/currency', message: `must be ${CURRENCY_FORMAT}` }])
  const { since, until } = timeWindow(query, timeZone)
  const descending = query.order === undefined ? sort !== 'name' : query.order === 'desc'
  const words = query.q === undefined ? [] : wordsOf([storableText(query.q)])
  if (query.q !== undefined && words.length === 0)
    throw problems.invalid([{ pointer: '/q', message: 'must contain a word' }])
  return {
    sort,
    descending,
    currency,
    words,
    status: segment === undefined || segment === 'new' ? null : (segment as CustomerStatus),
    newSince: segment === 'new' ? new Date(now.getTime() - NEW_CUSTOMER_DAYS * DAY_MS) : null,
    country: normalizeCountry(query.country) && storableText(normalizeCountry(query.country)!),
    channel: query.channel === undefined ? null : query.channel === UNATTRIBUTED ? '' : storableText(query.channel),
    plan: query.plan === undefined ? null : storableText(query.plan),
    profile: query.profile_id === undefined ? null : Number(query.profile_id.slice('prof_'.length)),
    acquired: { since, until },
  }
}

function orderName({ sort, descending }: Pick<CustomerPage, 'sort' | 'descending'>): string {
  return descending ? `-${sort}` : sort
}

/** Whether a part of a cursor is a value of this order. */
function sortCheck(sort: CustomerPage['sort']): (part: string) => boolean {
  if (sort === 'name') return part => storableText(part) === part
  if (sort === 'mrr') return part => /^-?\d{1,18}$/.test(part)
  return sort === 'revenue' ? part => parseDecimal(part) !== null : isTimestamp
}

function isProfile(part: string): boolean {
  return /^\d{1,15}$/.test(part)
}

export function customerBody(row: CustomerRow, scopes: readonly Scope[]): CustomerBody {
  const amounts = Object.entries(JSON.parse(row.amounts ?? '{}') as Record<string, { revenue: string; mrr: number }>)
  const maySeeSales = scopes.includes('conversions:read')
  const maySeeSubscriptions = scopes.includes('subscriptions:read')
  const revenue = amounts.flatMap(([currency, { revenue }]) =>
    Number(revenue) === 0 ? [] : [[currency, Number(revenue)]],
  )
  const mrr = amounts.flatMap(([currency, { mrr }]) => (mrr === 0 ? [] : [[currency, toMajor(mrr, currency)]]))
  return {
    profile_id: publicProfileId(row.profile)!,
    contact_id: row.contactId,
    customer: row.account && stripNamespaces(row.account),
    name: row.name,
    email: row.email,
    company: row.company,
    country: row.country,
    channel: row.channel,
    plans: maySeeSubscriptions ? row.plans : null,
    first_seen_at: row.firstSeenAt.toISOString(),
    last_seen_at: row.lastSeenAt.toISOString(),
    customer_since: row.customerSince?.toISOString() ?? null,
    orders: maySeeSales ? row.orders : null,
    revenue: maySeeSales ? Object.fromEntries(revenue) : null,
    mrr: maySeeSubscriptions ? Object.fromEntries(mrr) : null,
    status: row.status,
  }
}

const POLL_MS = 50

/** With `Prefer: wait=N`, waits until the job has computed what earlier writes changed. */
export async function untilCurrent(
  pool: pg.Pool,
  tenantId: number,
  prefer: string | string[] | undefined,
): Promise<void> {
  const deadline = performance.now() + 1_000 * (waitSeconds(prefer) ?? 0)
  while (performance.now() < deadline && (await hasOutdatedCustomers(pool, tenantId))) await sleep(POLL_MS)
}
