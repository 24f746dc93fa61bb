import assert from 'node:assert/strict'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { eventually } from '../eventually.ts'
import type { Answer, TestServer, TestTenant } from '../server.ts'

type Fields = Record<string, unknown>
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
type Row = any

/** Requests of one tenant to the routes for customers, and to those that create them. */
export function peopleOf(server: TestServer, tenant: TestTenant) {
  const post = async (path: string, key: string, body: object, expected: number) => {
    const { status, body: answer } = await server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
    assert.equal(status, expected, JSON.stringify(answer))
  }
  const ask = (path: string, query: Fields = {}, key = tenant.privateKey): Promise<Answer> =>
    server.request(`${path}?${new URLSearchParams(query as Record<string, string>)}`, { key })
  return {
    tenant,
    ask,
    track: (event: Fields) => post('/v1/track', tenant.trackingKey, event, 200),
    contact: (id: string, data: Fields, sourceUpdatedAt = new Date().toISOString()) =>
      post('/v1/contacts', tenant.privateKey, { entityType: 'contact', id, sourceUpdatedAt, data }, 202),
    order: (id: string, data: Fields, sourceUpdatedAt = new Date().toISOString()) =>
      post('/v1/orders', tenant.privateKey, { entityType: 'order', id, sourceUpdatedAt, data }, 202),
    /** Resolves when everything accepted so far shows in the list of customers. */
    async settled() {
      await server.settled()
      await eventually('customers to be up to date', async () => {
        const { rows } = await server.pool.query(
          'select exists (select from customer_changes where tenant_id = $1) as waiting',
          [parseTenantId(tenant.id)],
        )
        return !rows[0].waiting
      })
    },
    /** All rows of the export. */
    async exported(query: Fields = {}): Promise<Row[]> {
      const response = await fetch(
        `${server.url}/v1/export/customers?${new URLSearchParams(query as Record<string, string>)}`,
        { headers: { authorization: `Bearer ${tenant.privateKey}` } },
      )
      const text = await response.text()
      assert.equal(response.status, 200, text)
      return text.split('\n').flatMap(line => (line === '' ? [] : JSON.parse(line)))
    },
    /** All rows of the list, page by page. */
    async customers(query: Fields = {}): Promise<Row[]> {
      const rows: Row[] = []
      let cursor: string | null = null
      do {
        const { status, body }: Answer = await ask('/v1/customers', { ...query, ...(cursor && { cursor }) })
        assert.equal(status, 200, JSON.stringify(body))
        rows.push(...body.results)
        cursor = body.next_cursor
      } while (cursor !== null)
      return rows
    },
  }
}
