import { isObject, type JsonObject } from '../json/json.ts'

/**
 * Shopify, WooCommerce and GitHub sign the body, but not the header that tells what it is: whoever gets hold of a signed order could
 * send it as `orders/delete`. So a body that is plainly something else is refused. What it is not plainly stays allowed:
 * providers add topics and fields as they like.
 */

const SHOPIFY_TYPES: Record<string, string> = {
  orders: 'Order',
  draft_orders: 'DraftOrder',
  products: 'Product',
  customers: 'Customer',
  refunds: 'Refund',
}

/** Why a Shopify body cannot belong to its topic; null where it can. */
export function shopifyContradiction(topic: string, body: JsonObject): string | null {
  const [resource = '', action] = topic.split('/')
  const expected = SHOPIFY_TYPES[resource]
  if (expected === undefined) return null
  const found = shopifyType(body)
  if (found !== null && found !== expected)
    return `the topic ${topic} does not fit the body, which is of type ${found}; topics are not signed`
  const isWhole = 'created_at' in body || ownShape(body) !== null
  if (action === 'delete' && isWhole)
    return `the topic ${topic} does not fit the body, which is a whole object; topics are not signed`
  return null
}

function shopifyType(body: JsonObject): string | null {
  const { admin_graphql_api_id: gid } = body
  const named = typeof gid === 'string' ? /^gid:\/\/shopify\/([A-Za-z]+)\//.exec(gid)?.[1] : undefined
  return named !== undefined && Object.values(SHOPIFY_TYPES).includes(named) ? named : ownShape(body)
}

function ownShape(body: JsonObject): string | null {
  const has = (name: string) => name in body
  if (Array.isArray(body.line_items) && (has('order_number') || has('financial_status'))) return 'Order'
  if (Array.isArray(body.variants) && (has('handle') || has('product_type'))) return 'Product'
  if (Array.isArray(body.refund_line_items)) return 'Refund'
  if (has('orders_count') && has('verified_email')) return 'Customer'
  return null
}

/** Fields that only objects of one resource of WooCommerce have. */
const WOOCOMMERCE_FIELDS: Record<string, string> = {
  product: 'catalog_visibility',
  order: 'order_key',
  customer: 'is_paying_customer',
  subscription: 'billing_period',
  coupon: 'discount_type',
}

/** Why a WooCommerce body cannot belong to its topic; null where it can. */
export function woocommerceContradiction(topic: string, body: JsonObject): string | null {
  const [resource = '', action] = topic.split('.')
  if (!Object.hasOwn(WOOCOMMERCE_FIELDS, resource)) return null
  const isWhole = 'date_created' in body || 'date_created_gmt' in body
  if (action === 'deleted' && isWhole)
    return `the topic ${topic} does not fit the body, which is a whole object; topics are not signed`
  // subscriptions have the fields of orders too
  const found = Object.keys(WOOCOMMERCE_FIELDS).findLast(name => WOOCOMMERCE_FIELDS[name]! in body)
  if (found === undefined || found === resource) return null
  return `the topic ${topic} does not fit the body, which is of type ${found}; topics are not signed`
}

/** The field that an event of GitHub has, and those that only others have. */
const GITHUB_EVENTS: Record<string, { own: string; never?: string[] }> = {
  check_run: { own: 'check_run' },
  check_suite: { own: 'check_suite' },
  create: { own: 'master_branch' },
  delete: { own: 'ref_type', never: ['master_branch'] },
  deployment: { own: 'deployment', never: ['deployment_status'] },
  deployment_status: { own: 'deployment_status' },
  discussion: { own: 'discussion' },
  fork: { own: 'forkee' },
  issue_comment: { own: 'comment', never: ['pull_request', 'discussion'] },
  issues: { own: 'issue', never: ['comment'] },
  ping: { own: 'zen' },
  pull_request: { own: 'pull_request', never: ['comment', 'review', 'thread'] },
  pull_request_review: { own: 'review' },
  push: { own: 'commits' },
  release: { own: 'release' },
  workflow_job: { own: 'workflow_job' },
  workflow_run: { own: 'workflow_run' },
}
const GITHUB_FIELDS = [...new Set(Object.values(GITHUB_EVENTS).map(({ own }) => own))]

/** Why a GitHub body cannot belong to its event; null where it can. */
export function githubContradiction(event: string, body: JsonObject): string | null {
  const known = Object.hasOwn(GITHUB_EVENTS, event) ? GITHUB_EVENTS[event]! : null
  if (known === null) return null
  const isThere = (name: string) =>
    Array.isArray(body[name]) || isObject(body[name]) || typeof body[name] === 'string'
  const foreign = isThere(known.own) ? known.never?.find(isThere) : GITHUB_FIELDS.find(isThere)
  if (foreign === undefined) return null
  return `the event ${event} does not fit the body, which has ${foreign}; event names are not signed`
}
