import type { CustomerStatus } from '../../domain/customers/customers.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { customerWord } from './refresh.ts'

export const CUSTOMER_SORTS = ['last_seen_at', 'first_seen_at', 'name', 'revenue', 'mrr'] as const
type CustomerSort = (typeof CUSTOMER_SORTS)[number]

export type CustomerPage = {
  limit: number
  sort: CustomerSort
  descending: boolean
  /** Only people with an amount in this currency. Required to sort by an amount. */
  currency: string | null
  /** The sort value, as text, and the profile of the last row of the previous page. */
  after: { value: string; profile: number } | null
  /** Words that the name, company or e-mail address must have, by their beginning. */
  words: string[]
  status: CustomerStatus | null
  newSince: Date | null
  country: string | null
  /** '': people without a channel. */
  channel: string | null
  plan: string | null
  profile: number | null
  acquired: { since: Date | null; until: Date | null }
}

export type CustomerRow = {
  profile: number
  contactId: string | null
  account: string | null
  name: string | null
  email: string | null
  company: string | null
  country: string | null
  channel: string | null
  plans: string[]
  firstSeenAt: Date
  lastSeenAt: Date
  customerSince: Date | null
  orders: number
  status: CustomerStatus
  /** JSON text: by currency, revenue in major units and MRR in minor units. */
  amounts: string | null
}

/** `sortValue`: the value that orders the list, as text. */
type ListedCustomer = CustomerRow & { sortValue: string }

// A search that matches more people considers only some of them.
const MAX_MATCHES = 20_000

const COLUMNS: Record<CustomerSort, { column: string; type: string }> = {
  last_seen_at: { column: 'c.last_seen_at', type: 'timestamptz' },
  first_seen_at: { column: 'c.first_seen_at', type: 'timestamptz' },
  name: { column: 'c.sort_name', type: 'text collate "C"' },
  revenue: { column: 'm.revenue', type: 'numeric' },
  mrr: { column: 'm.mrr', type: 'bigint' },
}

/** One page of customers, in the order of an index. */
export async function listCustomers(db: Db, tenantId: number, page: CustomerPage): Promise<ListedCustomer[]> {
  const { text, values } = customerPage(tenantId, page)
  const { rows } = await queryPrepared<ListedCustomer>(db, text, values)
  return rows
}

const EXPORTED_ROWS = 1_000

/**
 * All customers of a list, in its order. The order is read first: a person who is seen meanwhile would otherwise move past the rows that are
 * already read, and be missing. That takes about 10 bytes of memory per person.
 */
export async function* customerPages(
  db: Db,
  tenantId: number,
  list: Omit<CustomerPage, 'limit' | 'after'>,
): AsyncGenerator<CustomerRow[]> {
  const { with: matches, from, order, values } = selection(tenantId, { ...list, after: null, limit: null })
  const text = `select array_to_string(array(${matches} select c.profile ${from} ${order} limit $2), ',') as profiles`
  const { rows } = await db.query<{ profiles: string }>(text, values)
  const { profiles } = rows[0]!
  for (let start = 0; start < profiles.length; ) {
    const portion: string[] = []
    while (portion.length < EXPORTED_ROWS && start < profiles.length) {
      const comma = profiles.indexOf(',', start)
      const end = comma === -1 ? profiles.length : comma
      portion.push(profiles.slice(start, end))
      start = end + 1
    }
    const { rows } = await queryPrepared<CustomerRow>(
      db,
      `select ${SHOWN} from customers c
       join unnest($2::bigint[]) with ordinality as wanted (profile, place) on wanted.profile = c.profile
       where c.tenant_id = $1 order by wanted.place`,
      [tenantId, portion],
    )
    yield rows
  }
}

/** The statement of a page. */
function customerPage(tenantId: number, page: CustomerPage): { text: string; values: unknown[] } {
  const { with: matches, from, order, sortValue, values } = selection(tenantId, page)
  const text = `${matches} select ${SHOWN}, ${sortValue} as "sortValue" ${from} ${order} limit $2`
  return { text, values }
}

const SHOWN = `c.profile, c.contact_id as "contactId", c.account, c.name, c.email, c.company, c.country, c.channel, c.plans,
  c.first_seen_at as "firstSeenAt", c.last_seen_at as "lastSeenAt", c.customer_since as "customerSince", c.orders, c.status,
  (select json_object_agg(currency, json_build_object('revenue', revenue::text, 'mrr', mrr)) from customer_amounts
   where tenant_id = $1 and profile = c.profile) as amounts`

/** The clauses that select and order customers. Limit null: all. */
function selection(tenantId: number, page: Omit<CustomerPage, 'limit'> & { limit: number | null }) {
  const values: unknown[] = [tenantId, page.limit]
  const where: string[] = []
  const add = (condition: (n: string) => string, value: unknown) => {
    values.push(value)
    where.push(condition(`$${values.length}`))
  }
  const { column, type } = COLUMNS[page.sort]
  const [order, beyond] = page.descending ? ['desc', '<'] : ['asc', '>']
  const isByAmount = page.sort === 'revenue' || page.sort === 'mrr'
  const owner = isByAmount ? 'm' : 'c'
  if (isByAmount) add(n => `m.currency = ${n}`, page.currency)
  else if (page.currency !== null)
    add(
      n => `exists (select from customer_amounts where tenant_id = $1 and profile = c.profile and currency = ${n})`,
      page.currency,
    )
  if (page.after !== null) {
    values.push(page.after.value, page.after.profile)
    where.push(`(${column}, ${owner}.profile) ${beyond} ($${values.length - 1}::${type}, $${values.length}::bigint)`)
  }
  if (page.status !== null) add(n => `c.status = ${n}`, page.status)
  if (page.newSince !== null) add(n => `c.customer_since >= ${n}`, page.newSince)
  if (page.country !== null) add(n => `c.country = ${n}`, page.country)
  if (page.channel === '') where.push('c.channel is null')
  else if (page.channel !== null) add(n => `c.channel = ${n}`, page.channel)
  if (page.plan !== null) add(n => `${n} = any(c.plans)`, page.plan)
  if (page.profile !== null) add(n => `c.profile = ${n}`, page.profile)
  if (page.acquired.since !== null) add(n => `c.acquired_at >= ${n}`, page.acquired.since)
  if (page.acquired.until !== null) add(n => `c.acquired_at <= ${n}`, page.acquired.until)
  let matches = ''
  if (page.words.length > 0) {
    values.push(page.words.map(word => prefixQuery(customerWord(tenantId, word))).join(' & '))
    // Materialized: otherwise the plan may read all people in order until it has found enough matches.
    matches = `with matches as materialized (
      select profile from customers where words @@ $${values.length}::tsquery and tenant_id = $1 limit ${MAX_MATCHES})`
    where.push(`${owner}.profile in (select profile from matches)`)
  }
  const from = isByAmount
    ? 'from customer_amounts m join customers c on c.tenant_id = $1 and c.profile = m.profile where m.tenant_id = $1'
    : 'from customers c where c.tenant_id = $1'
  // As times are shown: to the millisecond.
  const sortValue = column.endsWith('_at') ? `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')` : `${column}::text`
  return {
    with: matches,
    from: `${from}${where.map(condition => ` and ${condition}`).join('')}`,
    order: `order by ${column} ${order}, ${owner}.profile ${order}`,
    sortValue,
    values,
  }
}

/** A lexeme of a tsquery that matches words with this beginning. */
function prefixQuery(word: string): string {
  return `'${word.replaceAll('\\', '\\\\').replaceAll("'", "''")}':*`
}
