import { isUuid } from '../../domain/ids.ts'
import { SCOPES, type Scope } from '../../domain/tenants/keys.ts'
import { DAY_MS } from '../../domain/time.ts'
import { momentIn } from '../../domain/time-zone.ts'

type Property = Record<string, unknown>

export type Tool = {
  name: string
  title: string
  description: string
  /** One of these is enough. Empty: no scope is required. */
  scopes: readonly Scope[]
  /** The route that the tool calls; its query parameters are arguments of the tool. Null: the tool calls no route. */
  route: string | null
  /** Arguments in addition to the query parameters, and which of them are required. */
  own?: Record<string, Property>
  required?: readonly string[]
  /** The path for these arguments; default: the route. A string: why the arguments are invalid. */
  path?(args: Arguments): { path: string } | string
  /** The movements behind the result. They are added if the argument `why` is true. */
  why?: BehindTheNumber
}

const RECORDS_READ = ['products:read', 'contacts:read', 'orders:read'] as const
const ENTITY_TYPES = ['product', 'contact', 'order']
const entityType = { type: 'string', enum: ENTITY_TYPES, description: 'Type of the record' }
const why = { type: 'boolean', description: 'Include the accounts behind the change, largest change first' }

export const SEARCH_DOCS = 'search_docs'

/** An id as a path segment; null for dot segments, which would lead to another path even if percent-encoded. */
const toPathSegment = (id: unknown) =>
  typeof id === 'string' && !['', '.', '..'].includes(id) ? encodeURIComponent(id) : null
const isEntityType = (value: unknown): value is string => ENTITY_TYPES.includes(value as string)
const NO_ENTITY_TYPE = `entityType must be one of ${ENTITY_TYPES.join(', ')}`

/** The arguments of a tool as received: query parameters, and its own. */
export type Arguments = Record<string, unknown>

/** The parameters of GET /v1/subscriptions/movements for the movements behind a result: their period, and its filters. */
type BehindTheNumber = (args: Arguments, body: Body) => Window & Record<string, unknown>
type Window = { since: string; until: string }
type Body = Record<string, unknown>

// The overview covers 30 days.
const OVERVIEW_MS = 30 * DAY_MS

const behindOverview: BehindTheNumber = (args, body) => {
  const until = String(body.as_of)
  return { ...readFilters(args), since: new Date(Date.parse(until) - OVERVIEW_MS).toISOString(), until }
}

const FILTERS = [
  'currency',
  'as_of',
  'basis',
  'plan',
  'plan_group',
  'interval',
  'channel',
  'source',
  'country',
  'status',
]

function readFilters(args: Arguments): Record<string, unknown> {
  return Object.fromEntries(Object.entries(args).filter(([name]) => FILTERS.includes(name)))
}

/** The movements in all buckets: from the start of the first to the end of the last. `since` is exclusive, hence 1 ms earlier. */
const behindHistory: BehindTheNumber = (args, body) => {
  const { results, interval, policy, as_of } = body as unknown as History
  const [first, last] = [results[0], results.at(-1)]
  // The argument `interval` of this report is the length of its buckets.
  const filters = { ...readFilters(args), interval: args.billing_interval }
  if (!first || !last) return { ...filters, since: as_of, until: as_of }
  const before = (day: string) => new Date(momentIn(policy.time_zone, day)!.getTime() - 1).toISOString()
  return { ...filters, since: before(first.date), until: before(nextDay(last.date, interval)) }
}

type History = { results: { date: string }[]; interval: string; policy: { time_zone: string }; as_of: string }

/** The first day of the next bucket. */
function nextDay(date: string, interval: string): string {
  const next = new Date(`${date}T00:00:00Z`)
  if (interval === 'month') next.setUTCMonth(next.getUTCMonth() + 1)
  else next.setUTCDate(next.getUTCDate() + (interval === 'week' ? 7 : 1))
  return next.toISOString().slice(0, 10)
}

const behindMovements: BehindTheNumber = (args, body) => ({
  ...readFilters(args),
  since: String(body.since),
  until: String(body.until),
})

/** All tools. They only read. */
export const TOOLS: readonly Tool[] = [
  {
    name: 'find_records',
    title: 'Find records',
    description:
      'List products, contacts or orders by time of their last change, in pages (cursor = next_cursor of the previous page).',
    scopes: RECORDS_READ,
    route: '/v1/products',
    own: { entityType },
    required: ['entityType'],
    path: args => (isEntityType(args.entityType) ? { path: `/v1/${args.entityType}s` } : NO_ENTITY_TYPE),
  },
  {
    name: 'get_record',
    title: 'Get a record',
    description: 'One product (by SKU, or by id), contact or order (by id) in the latest version received.',
    scopes: RECORDS_READ,
    route: '/v1/products/:id',
    own: { entityType, id: { type: 'string', description: 'SKU or id of a product, or id of a contact or order' } },
    required: ['entityType', 'id'],
    path({ entityType, id }) {
      if (!isEntityType(entityType)) return NO_ENTITY_TYPE
      const segment = toPathSegment(id)
      return segment === null ? 'id must be the id of a record' : { path: `/v1/${entityType}s/${segment}` }
    },
  },
  {
    name: 'list_events',
    title: 'List events',
    description: 'List events without conversions, newest first, in pages (cursor = next_cursor of the previous page).',
    scopes: ['events:read'],
    route: '/v1/events',
  },
  {
    name: 'lookup_event',
    title: 'Look up an event',
    description:
      'Whether an event is queued, deferred, stored, a duplicate or a dead letter, and why. Find it by its Kontor id (id) or by its sender’s id (event_id or inbound_event_id).',
    scopes: ['events:read'],
    route: '/v1/events/lookup',
    own: { id: { type: 'string', description: 'The Kontor id: a UUID' } },
    // /v1/events/ has other routes too, so only a UUID is an id
    path({ id }) {
      if (id === undefined) return { path: '/v1/events/lookup' }
      return typeof id === 'string' && isUuid(id) ? { path: `/v1/events/${id}` } : 'id must be a UUID'
    },
  },
  {
    name: 'list_conversions',
    title: 'List conversions',
    description:
      'List sales and other conversions with amount, currency and contact, newest first, in pages (cursor = next_cursor of the previous page).',
    scopes: ['conversions:read'],
    route: '/v1/conversions',
  },
  {
    name: 'event_series',
    title: 'Count events over time',
    description: 'Number of events per minute, hour or day.',
    scopes: ['events:read'],
    route: '/v1/events/series',
  },
  {
    name: 'conversion_series',
    title: 'Sales over time',
    description: 'Number and amount of conversions per minute, hour or day, by currency.',
    scopes: ['conversions:read'],
    route: '/v1/conversions/series',
  },
  {
    name: 'search',
    title: 'Search',
    description: 'Find people, records and events by the beginning of a name or by an id.',
    scopes: ['events:read', ...RECORDS_READ],
    route: '/v1/search',
  },
  {
    name: 'list_dead_letters',
    title: 'List dead letters',
    description: 'List items that were rejected or failed every attempt, with the error, newest first.',
    scopes: ['events:read'],
    route: '/v1/dead-letters',
  },
  {
    name: 'list_currencies',
    title: 'List currencies',
    description: 'The currencies that the tenant uses, the most used first, and the time zone of its reports.',
    scopes: SCOPES.filter(scope => scope.endsWith(':read')),
    route: '/v1/tenant',
  },
  {
    name: 'list_customers',
    title: 'List customers',
    description:
      'List people with a purchase, a subscription or a contact: revenue, MRR, channel and status. By segment (at_risk, new …), words (q), sorted by mrr, revenue or last_seen_at, in pages.',
    scopes: ['contacts:read'],
    route: '/v1/customers',
  },
  {
    name: 'channels',
    title: 'Visitors, trials, customers and revenue by channel',
    description: 'Where the people of a period came from, and how many became identified, trials and customers.',
    scopes: ['events:read'],
    route: '/v1/channels',
  },
  {
    name: 'funnel',
    title: 'Funnel',
    description: 'How many people did 2 to 6 things in order: event types, or pages as page:/pricing*.',
    scopes: ['events:read'],
    route: '/v1/funnel',
  },
  report('overview', {
    title: 'Subscription overview',
    description:
      'Subscription metrics: MRR, ARR, ARPA, accounts, movements of 30 days, rates and cash. With why: the accounts behind the movements of those 30 days.',
    why: behindOverview,
  }),
  report('attention', {
    title: 'Items that need attention',
    description: 'Open payment issues, renewals, scheduled cancellations and upcoming billing.',
  }),
  report('acquisition', {
    title: 'MRR by acquisition source',
    description: 'Acquisition sources of the accounts in the current MRR, and their retention.',
  }),
  report('account', {
    title: 'One account',
    description: 'Summary, items and timeline of one paying customer, by customer or subscription_id.',
  }),
  report('history', {
    title: 'MRR over time',
    description:
      'MRR by day, week or month, with its movements, new and churned accounts and rates. With why: the accounts behind the movements. Answers "why did MRR fall last month?".',
    why: behindHistory,
  }),
  report('movements', {
    title: 'Movements of MRR',
    description:
      'Every change of an account’s MRR (new, expansion, contraction, churn, reactivation) with its cause. With why: totals by account.',
    why: behindMovements,
  }),
  report('breakdown', {
    title: 'MRR by plan, country or other dimension',
    description: 'The current MRR, grouped by one dimension.',
  }),
  report('retention', {
    title: 'Retention by cohort',
    description: 'How much MRR and how many accounts remain of each monthly cohort.',
  }),
  report('cash', {
    title: 'Invoiced, collected and refunded',
    description: 'Invoices, payments, refunds and disputes per month.',
  }),
  report('revenue', {
    title: 'Recognized and deferred revenue',
    description: 'Invoiced, recognized and deferred revenue per month, from the service periods of invoices.',
  }),
  report('forecast', {
    title: 'Scheduled changes of MRR',
    description:
      'MRR of the coming months, from scheduled changes: cancellations, starts, ends of trials and of discounts. Not a prediction.',
  }),
  report('churn-reasons', {
    title: 'Churn by reason',
    description: 'Churned accounts and their MRR per month, by the reason that the billing system reports.',
  }),
  report('books', {
    title: 'Closed months',
    description: 'Closed months, and what changed in them since they were closed.',
  }),
  {
    name: 'explain_exclusions',
    title: 'Items excluded from MRR',
    description: 'Subscription items that are excluded from MRR, with the reason and the MRR they would have.',
    scopes: ['subscriptions:read'],
    route: '/v1/subscriptions/exclusions',
  },
  {
    name: SEARCH_DOCS,
    title: 'Search the documentation',
    description: 'Search the headings and sentences of Kontor’s documentation; the best matching section first.',
    scopes: [],
    route: null,
    own: { query: { type: 'string', description: 'Search terms' } },
    required: ['query'],
  },
]

function report(name: string, { title, description, why: behind }: Pick<Tool, 'title' | 'description' | 'why'>): Tool {
  return {
    ...{ name: `subscriptions_${name.replace('-', '_')}`, title, description },
    scopes: ['subscriptions:read'],
    route: `/v1/subscriptions/${name}`,
    ...(behind && { own: { why }, why: behind }),
  }
}

type Movement = {
  customer: string
  customer_name: string | null
  movement_type: string
  mrr_delta: number
  cause: string
  occurred_at: string
}
type MovementPage = { results: Movement[]; pages: number; count: number; totals: unknown }

/** The movements of one account. */
type AccountBehind = {
  customer: string
  customer_name: string | null
  mrr_delta: number
  movements: Pick<Movement, 'movement_type' | 'mrr_delta' | 'cause' | 'occurred_at'>[]
}

export type Why = {
  since: string
  until: string
  totals: unknown
  accounts: AccountBehind[]
  /** False: there are more movements or accounts than are included. */
  complete: boolean
}

const MAX_PAGES = 10
const MAX_ACCOUNTS = 100

/** Sums the movements by account, largest change first. Null: the movements cannot be read. */
export async function accountsBehind(
  window: { since: string; until: string },
  read: (page: number) => Promise<MovementPage | null>,
): Promise<Why | null> {
  const accounts = new Map<string, AccountBehind>()
  let last: MovementPage | null = null
  for (let page = 1; page <= Math.min(last?.pages ?? 1, MAX_PAGES); page++) {
    last = await read(page)
    if (last === null) return null
    for (const { customer, customer_name, ...movement } of last.results) {
      const account = accounts.get(customer) ?? { customer, customer_name, mrr_delta: 0, movements: [] }
      accounts.set(customer, account)
      const { movement_type, mrr_delta, cause, occurred_at } = movement
      account.mrr_delta = Math.round((account.mrr_delta + mrr_delta) * 1e6) / 1e6
      account.movements.push({ movement_type, mrr_delta, cause, occurred_at })
    }
  }
  const sorted = [...accounts.values()].sort((a, b) => Math.abs(b.mrr_delta) - Math.abs(a.mrr_delta))
  const complete = (last?.pages ?? 0) <= MAX_PAGES && sorted.length <= MAX_ACCOUNTS
  return { ...window, totals: last?.totals ?? null, accounts: sorted.slice(0, MAX_ACCOUNTS), complete }
}
