// An HTTP server that behaves like Stripe's list endpoints: keys, pages, cursors, expanded fields and rate limits.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

// biome-ignore lint/suspicious/noExplicitAny: Stripe's objects
type Fields = any

export type Account = Record<string, Fields[]>

type Reply = { status?: number; headers?: Record<string, string>; body: string }

export type StripeServer = {
  url: string
  account: Account
  /** The paths and queries of all requests. */
  requests: string[]
  /** Replaces the answers to some requests; null: the normal answer. */
  intercept: (request: IncomingMessage, count: number) => Reply | null
  close(): void
}

export const LIVE_KEY = 'rk_live_reading'

/** Every list that Stripe has; those that `account` does not name are empty. */
const LISTS = [
  'coupons',
  'promotion_codes',
  'customers',
  'subscriptions',
  'subscription_items',
  'invoices',
  'invoice_payments',
  'charges',
  'refunds',
  'credit_notes',
  'disputes',
]

const EXPANDABLE: Record<string, RegExp> = {
  coupons: /^data\.applies_to$/,
  subscriptions: /^data\.(customer|discounts(\.coupon\.applies_to)?|items\.data\.discounts)$/,
  subscription_items: /^data\.discounts$/,
}

export async function startStripe(given: Account = {}): Promise<StripeServer> {
  const account: Account = { ...Object.fromEntries(LISTS.map(name => [name, []])), ...given }
  const server = createServer((request, response) => {
    stripe.requests.push(request.url!)
    const { status = 200, headers = {}, body } = stripe.intercept(request, stripe.requests.length) ?? answer(request)
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(body)
  })

  function answer({ url, headers }: IncomingMessage): Reply {
    const { pathname, searchParams: query } = new URL(url!, 'http://stripe')
    const fail = (status: number, message: string): Reply => ({ status, body: JSON.stringify({ error: { message } }) })
    if (headers.authorization !== `Bearer ${LIVE_KEY}`) return fail(401, 'Invalid API Key provided')
    const name = pathname.replace('/v1/', '')
    if (!account[name]) return fail(404, `Unrecognized request URL (GET: ${pathname})`)
    const unknown = query.getAll('expand[]').find(path => !EXPANDABLE[name]?.test(path))
    if (unknown !== undefined) return fail(400, `This property cannot be expanded (${unknown}).`)
    const all = account[name].filter(
      object =>
        (name !== 'subscriptions' || query.get('status') === 'all' || object.status !== 'canceled') &&
        (name !== 'subscription_items' || object.subscription === query.get('subscription')),
    )
    const after = query.get('starting_after')
    const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1
    if (after !== null && from === 0) return fail(400, `No such object: '${after}'`)
    const limit = Math.min(Number(query.get('limit') ?? 10), 100)
    const data = all.slice(from, from + limit)
    const body = { object: 'list', url: pathname, has_more: from + limit < all.length, data }
    return { body: JSON.stringify(name === 'subscriptions' ? expandCustomers(body, query) : body) }
  }

  function expandCustomers(page: { data: Fields[] }, query: URLSearchParams) {
    if (!query.getAll('expand[]').includes('data.customer')) return page
    const customers = new Map(account.customers!.map(customer => [customer.id, customer]))
    return {
      ...page,
      data: page.data.map(each => ({ ...each, customer: customers.get(each.customer) ?? each.customer })),
    }
  }

  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const stripe: StripeServer = {
    url: `http://127.0.0.1:${port}`,
    account,
    requests: [],
    intercept: () => null,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return stripe
}

/** The key of a rate limit: `Retry-After` in seconds. */
export function tooManyRequests(retryAfter: string): Reply {
  const body = JSON.stringify({ error: { type: 'rate_limit_error', message: 'Too many requests' } })
  return { status: 429, headers: { 'retry-after': retryAfter }, body }
}
