export const FIXTURE_SECRET_KEY = '33'.repeat(32)

export type Answers = Record<string, unknown>

/** Requests to a data directory before and after an upgrade. Their responses do not depend on the date. */
export const QUESTIONS = [
  '/v1/products',
  '/v1/contacts?include_deleted=true',
  '/v1/orders/o-1',
  '/v1/events',
  '/v1/conversions',
  '/v1/subscriptions/overview?currency=EUR&as_of=2026-03-01',
  '/v1/subscriptions/movements?currency=EUR&since=2026-01-01&until=2026-04-01',
  '/v1/subscriptions/account?currency=EUR&customer=cus-1&as_of=2026-03-01',
  '/v1/subscriptions/history?currency=EUR&from=2026-01-01&to=2026-03-31&as_of=2026-04-15',
]

export async function fetchAnswers(url: string, key: string, paths: string[]): Promise<Answers> {
  const answers: Answers = {}
  for (const path of paths) {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })
    answers[path] = { status: response.status, body: await response.json() }
  }
  return answers
}
