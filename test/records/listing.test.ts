import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { type Api, aRecord, openApi } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
  for (let from = 0; from < 120; from += 40) {
    const records = Array.from({ length: 40 }, (_, i) =>
      aRecord('contact', { id: `c-${String(from + i).padStart(3, '0')}`, data: { n: from + i } }),
    )
    await api.post('/v1/contacts/batch', { records })
    await api.server.settled()
  }
})
after(() => api.close())

type Row = { id: string; updatedAt: string; deleted?: boolean; data: unknown }

async function allPages(query: string): Promise<Row[][]> {
  const pages: Row[][] = []
  let cursor: string | null = null
  do {
    const { status, body } = await api.get(
      `/v1/contacts?${query}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
    )
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body).sort(), ['next_cursor', 'results'])
    pages.push(body.results)
    cursor = body.next_cursor
  } while (cursor !== null)
  return pages
}

test('pages have 50 records by default, each record once, and end with a null cursor', async () => {
  const pages = await allPages('')
  assert.deepEqual(
    pages.map(page => page.length),
    [50, 50, 20],
  )
  assert.equal(new Set(pages.flat().map(({ id }) => id)).size, 120)
  const times = pages.flat().map(({ updatedAt }) => updatedAt)
  assert.deepEqual(times, times.toSorted())
})

test('any page size gives the same records in the same order', async () => {
  const [whole] = await allPages('limit=100')
  for (const limit of [1, 7, 40]) {
    const rows = (await allPages(`limit=${limit}`)).flat()
    assert.deepEqual(rows.slice(0, 100), whole)
    assert.equal(rows.length, 120)
  }
})

test('a cursor of another list is 400', async () => {
  const cursor = encodeURIComponent((await api.get('/v1/contacts?limit=1')).body.next_cursor)
  const { status, body } = await api.get(`/v1/orders?cursor=${cursor}`)
  assert.deepEqual([status, body.errors[0].pointer], [400, '/cursor'])
})

test('a limit above 100 is served as 100; below 1 or no integer is 400', async () => {
  for (const limit of ['101', '1000000']) {
    assert.equal((await api.get(`/v1/contacts?limit=${limit}`)).body.results.length, 100)
  }
  for (const limit of ['0', '-1', '1.5', 'ten', '']) {
    const answer = await api.get(`/v1/contacts?limit=${limit}`)
    assert.equal(answer.status, 400, limit)
    assert.match(answer.body.errors[0].pointer, /limit/)
  }
})

test('rows have the format of a single record', async () => {
  const [row] = (await api.get('/v1/contacts?limit=1')).body.results
  assert.deepEqual(row, await api.record('contact', row.id))
})

test('updated_since selects later changes, with include_deleted also deletes', async () => {
  const [before] = (await allPages('limit=100')).slice(-1)
  const since = before!.at(-1)!.updatedAt
  await api.write('contact', { id: 'c-005', sourceUpdatedAt: '2026-03-01', data: { changed: true } })
  await api.remove('contact', { id: 'c-006', sourceUpdatedAt: '2026-03-01' })
  await api.server.settled()
  const after = new Date(Date.parse(since) + 1).toISOString()
  const changed = (await allPages(`updated_since=${after}`)).flat()
  assert.deepEqual(
    changed.map(({ id }) => id),
    ['c-005'],
  )
  assert.equal('deleted' in changed[0]!, false)
  const withDeleted = (await allPages(`updated_since=${after}&include_deleted=true&limit=1`)).flat()
  assert.deepEqual(
    withDeleted
      .map(({ id, deleted, data }) => ({ id, deleted, gone: data === null }))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
    [
      { id: 'c-005', deleted: false, gone: false },
      { id: 'c-006', deleted: true, gone: true },
    ],
  )
  assert.equal((await allPages('limit=100')).flat().length, 119)
})

test('a cursor with a time or id that PostgreSQL cannot read is not an internal error', async () => {
  for (const parts of [
    ['contact', '2026-01-01T00:00:00,5Z', 'a'],
    ['contact', '2026-01-01T00:00:00.5Z', 'a\u0000b'],
    ['contact', '2026-01-01', '\ud800'],
  ]) {
    const cursor = Buffer.from(JSON.stringify(parts)).toString('base64url')
    const { status } = await api.get(`/v1/contacts?cursor=${cursor}`)
    assert.equal(status, 200, JSON.stringify(parts))
  }
})

test('an invalid time or cursor is 400', async () => {
  for (const query of [
    'updated_since=yesterday',
    'cursor=x',
    'cursor=',
    `cursor=${Buffer.from('["contact","2026","a","b"]').toString('base64url')}`,
    `cursor=${Buffer.from('["contact","no time","a"]').toString('base64url')}`,
    `cursor=${Buffer.from('[1,2]').toString('base64url')}`,
    'include_deleted=perhaps',
  ]) {
    const answer = await api.get(`/v1/contacts?${query}`)
    assert.equal(answer.status, 400, query)
    assert.equal(answer.body.code, 'invalid_request')
  }
})

test('a page of large records is complete, and is sent in portions', async () => {
  const ids = Array.from({ length: 12 }, (_, i) => `large-${String(i).padStart(2, '0')}`)
  // 1 MB each when read. Half of them compress well in storage, half do not.
  const records = ids.map((id, i) =>
    aRecord('product', {
      ...{ id, data: { fill: i % 2 ? 'x'.repeat(990_000) : randomBytes(495_000).toString('hex') } },
    }),
  )
  for (const some of [records.slice(0, 6), records.slice(6)]) {
    assert.equal((await api.post('/v1/products/batch', { records: some })).status, 202)
    await api.server.settled()
  }
  const page = async (query: string) => {
    const { body, headers } = await api.get(`/v1/products?${query}`)
    // A response that is buffered as a whole has a Content-Length.
    assert.equal(headers.get('content-length'), null)
    return [body.results.map((row: Row) => row.id), body.next_cursor]
  }
  const [all, end] = await page('limit=100')
  assert.deepEqual([all.toSorted(), end], [ids, null])
  assert.deepEqual(await page('limit=12'), [all, null])
  const [first, cursor] = await page('limit=5')
  assert.deepEqual(first, all.slice(0, 5))
  assert.deepEqual(await page(`limit=100&cursor=${encodeURIComponent(cursor)}`), [all.slice(5), null])
})

test('a list without records is empty', async () => {
  assert.deepEqual((await api.get('/v1/orders')).body, { results: [], next_cursor: null })
})
