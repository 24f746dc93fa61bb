import { isUuid } from '../../domain/ids.ts'
import type { Scope } from '../../domain/tenants/keys.ts'
import {
  type Arguments,
  type BehindTheNumber,
  behindHistory,
  behindMovements,
  behindOverview,
} from './why.ts'

type Property = Record<string, unknown>

export type Tool = {
  name: string
  title: string
  description: string
  /** Of several, one suffices; none: every key may. */
  scopes: readonly Scope[]
  /** The route whose query parameters are its arguments; null: it answers itself. */
  route: string | null
  /** Arguments beyond the query parameters, and which of them must be there. */
  own?: Record<string, Property>
  required?: readonly string[]
  /** Where the arguments lead; default: the route. A text: what is wrong with them. */
  path?(args: Arguments): { path: string } | string
  /** The rows behind the number, added to the answer where `why` asks for them. */
  why?: BehindTheNumber
}

const RECORDS_READ = ['products:read', 'contacts:read', 'orders:read'] as const
const ENTITY_TYPES = ['product', 'contact', 'order']
const entityType = { type: 'string', enum: ENTITY_TYPES, description: 'Type of the record' }
const why = {
  type: 'boolean',
  description: 'Include the accounts behind the change, largest change first',
}

export const SEARCH_DOCS = 'search_docs'

/** An id as a part of a path; null for what would lead elsewhere: dots are steps there, however they are written. */
const segmentOf = (id: unknown) =>
  typeof id === 'string' && !['', '.', '..'].includes(id) ? encodeURIComponent(id) : null
const isEntityType = (value: unknown): value is string => ENTITY_TYPES.includes(value as string)
const NO_ENTITY_TYPE = `entityType must be one of ${ENTITY_TYPES.join(', ')}`

/** Every tool there is. All of them only read. */
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
    own: { entityType, id: { type: 'string', description: 'SKU of a product' } },
    required: ['entityType', 'id'],
    path({ entityType, id }) {
      if (!isEntityType(entityType)) return NO_ENTITY_TYPE
      const segment = segmentOf(id)
      return segment === null ? 'id must be the id of a record' : { path: `/v1/${entityType}s/${segment}` }
    },
  },
  {
    name: 'list_events',
    title: 'List events',
    description:
      'List events without conversions, newest first, in pages (cursor = next_cursor of the previous page).',
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
    // beside events there are other things under their path
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
      'MRR by day, week or month, with its movements. With why: the accounts behind the movements. Answers "why did MRR fall last month?".',
    why: behindHistory,
  }),
  report('movements', {
    title: 'Movements of MRR',
    description:
      'Every change of an account’s MRR (new, expansion, contraction, churn, reactivation) with its cause. With why: totals by account.',
    why: behindMovements,
  }),
  {
    name: 'explain_exclusions',
    title: 'Items excluded from MRR',
    description:
      'Subscription items that are excluded from MRR, with the reason and the MRR they would have.',
    scopes: ['subscriptions:read'],
    route: '/v1/subscriptions/exclusions',
  },
  {
    name: SEARCH_DOCS,
    title: 'Search the documentation',
    description: 'Search Kontor’s documentation; the best matching sections first.',
    scopes: [],
    route: null,
    own: { query: { type: 'string', description: 'Search terms' } },
    required: ['query'],
  },
]

function report(
  name: string,
  { title, description, why: behind }: Pick<Tool, 'title' | 'description' | 'why'>,
): Tool {
  return {
    ...{ name: `subscriptions_${name}`, title, description },
    scopes: ['subscriptions:read'],
    route: `/v1/subscriptions/${name}`,
    ...(behind && { own: { why }, why: behind }),
  }
}
