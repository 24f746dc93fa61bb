import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { SYSTEM } from '../../src/admin/actor.ts'
import { archiveView, switchArchive } from '../../src/admin/archive.ts'
import { flushArchive, openStorage, type Storage } from '../../src/jobs/archive.ts'
import { chance } from '../books/random.ts'
import { startServer, type TestTenant } from '../server.ts'
import { startBucket } from './bucket.ts'
import { openDuckdb, type Query } from './duckdb.ts'

const directory = await mkdtemp(join(tmpdir(), 'kontor-archive-'))
// Tests close the files explicitly.
const server = await startServer({
  KONTOR_ARCHIVE_URL: `file://${directory}`,
  KONTOR_ARCHIVE_FLUSH: '1h',
})
const duckdb = await openDuckdb()
after(async () => {
  await server.close()
  await duckdb?.close()
  await rm(directory, { recursive: true })
})

const writer = fileURLToPath(new URL('./writer.ts', import.meta.url))
const NO_S3 = { endpoint: null, region: null, accessKeyId: null, secretAccessKey: null, sessionToken: null }
const storage = await openStorage(`file://${directory}`, NO_S3)
const flush = (into: Storage = storage) => flushArchive({ pool: server.pool, storage: into, owner: randomUUID() })
const post = (path: string, key: string, body: object) =>
  server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
const batch = (tenant: TestTenant, from: number, count: number) =>
  post('/v1/batch', tenant.trackingKey, {
    batch: Array.from({ length: count }, (_, i) => ({
      ...{ type: 'track', messageId: `m-${from + i}`, anonymousId: `v-${i}` },
      event: i % 10 === 0 ? 'purchase' : 'page_view',
      properties: { n: from + i, amount: 5, currency: 'EUR', text: 'ä"\n' },
    })),
  })
const filesOf = async () =>
  (await readdir(directory, { recursive: true })).filter(name => name.endsWith('.parquet')).sort()
const skip = duckdb === null ? 'DuckDB is not installed here' : false
const ask: Query = (sql, ...values) => duckdb!.query(sql, ...values)
const events = (root = directory) => `read_parquet('${root}/*/table=events/*/*/*.parquet', hive_partitioning = true)`
const conversions = `read_parquet('${directory}/*/table=conversions/*/*/*.parquet', hive_partitioning = true)`

test('every event is in exactly one file, as the API shows it, even if the writer is killed at any time', {
  skip,
}, async () => {
  const { tenant } = server
  await batch(tenant, 0, 500)
  await server.settled()
  let puts = 0
  const dying: Storage = {
    async put(path, bytes) {
      puts++
      if (puts === 1) throw new Error('killed before it was written')
      await storage.put(path, bytes)
      if (puts === 2) throw new Error('killed after it was written')
    },
  }
  await assert.rejects(flush(dying), /before/)
  await assert.rejects(flush(dying), /after/)
  const [written] = await filesOf()
  const bytes = await readFile(join(directory, written!))
  // Events that arrive before the next writer continues do not get into the planned file.
  await batch(tenant, 500, 300)
  await server.settled()
  await Promise.all([flush(), flush()])
  await flush()
  assert.deepEqual(await readFile(join(directory, written!)), bytes)
  const [counted] = await ask(
    `select count(*)::int as rows, count(distinct id)::int as ids, count(distinct payload ->> '$.properties.n')::int as sent,
       count(*) filter (conversion)::int as sales from ${events()} where tenant = ?`,
    tenant.id,
  )
  assert.deepEqual(counted, { rows: 800, ids: 800, sent: 800, sales: 80 })
  const listed = (await server.request('/v1/events?limit=1', { key: tenant.privateKey })).body.results[0]
  const [row] = await ask(
    `select id, event_type, visitor, profile_id, payload, meta, epoch_ms(occurred_at)::double as occurred_at
     from ${events()} where id = ?`,
    listed.id,
  )
  assert.deepEqual(
    { ...row, payload: JSON.parse(row!.payload as string), meta: JSON.parse(row!.meta as string) },
    {
      ...{ id: listed.id, event_type: listed.event_type, visitor: listed.visitor },
      ...{ profile_id: listed.profile_id, payload: listed.payload, meta: listed.meta },
      occurred_at: Date.parse(listed.occurred_at),
    },
  )
  const [file] = await ask(`select distinct compression from parquet_metadata('${directory}/${written}')`)
  assert.equal(file!.compression, 'ZSTD')
  const view = await archiveView(server.pool)
  assert.equal(view.waiting, 0)
  assert.ok(view.rows >= 800)
  const { length } = await filesOf()
  assert.equal(view.files, length)
  // Two batches, each with events and conversions, across at most one change of hour.
  assert.ok(length >= 4 && length <= 8, `${length} files`)
})

for (const place of ['folder', 'bucket'] as const)
  test(`a process that is killed repeatedly while it writes to a ${place} leaves each event in exactly one file`, {
    skip,
  }, async t => {
    const bucket = place === 'bucket' ? await startBucket() : null
    const root = bucket?.directory ?? directory
    if (bucket) t.after(bucket.close)
    const tenants = [await server.anotherTenant(`${place} 1`), await server.anotherTenant(`${place} 2`)]
    const { between } = chance(place)
    const env = {
      ...{ ...process.env, DATABASE_URL: server.databaseUrl },
      ...(bucket ? { ARCHIVE_URL: 's3://archive', S3_ENDPOINT: bucket.url } : { ARCHIVE_URL: `file://${directory}` }),
    }
    const kills = bucket ? 3 : 4
    for (let round = 0; round < kills; round++) {
      for (const tenant of tenants) await batch(tenant, round * 300, 300)
      await server.settled()
      const child = spawn(process.execPath, [writer], { env, stdio: ['ignore', 'pipe', 'inherit'] })
      t.after(() => child.kill('SIGKILL'))
      const gone = once(child, 'exit')
      // Four files are waiting. The process is killed before, while or after it writes one.
      let begun = 0
      const last = between(1, 4)
      for await (const text of child.stdout.setEncoding('utf8')) {
        begun += (text as string).split('\n').length - 1
        if (begun >= last) break
      }
      await sleep(between(0, 20))
      child.kill('SIGKILL')
      await gone
      // Its lease has expired.
      await server.pool.query(`update archive_progress set leased_until = '-infinity'`)
    }
    await flush(
      bucket ? await openStorage('s3://archive', { ...NO_S3, ...bucket.access, endpoint: bucket.url }) : storage,
    )
    const found = await Promise.all(
      tenants.map(({ id }) =>
        ask(
          `select count(*)::int as rows, count(distinct id)::int as ids, count(distinct payload ->> '$.properties.n')::int as sent
           from read_parquet('${root}/tenant=${id}/table=events/**/*parquet${bucket ? '._S3rver_object' : ''}')`,
        ),
      ),
    )
    const all = { rows: kills * 300, ids: kills * 300, sent: kills * 300 }
    assert.deepEqual(found.flat(), [all, all])
  })

test('a conversion has one row for each change', { skip }, async () => {
  const tenant = await server.anotherTenant('changes')
  const order = (total: number, at: string) =>
    post('/v1/orders', tenant.privateKey, {
      ...{ entityType: 'order', id: 'o-1', sourceUpdatedAt: at },
      data: { total, currency: 'EUR' },
    })
  await order(10, '2026-01-01T00:00:00Z')
  await server.settled()
  await order(12.5, '2026-01-02T00:00:00Z')
  await server.settled()
  await flush()
  const rows = await ask(
    `select change, amount, source_object_id from ${conversions} where tenant = ? order by changed_at`,
    tenant.id,
  )
  assert.deepEqual(rows, [
    { change: 'created', amount: 10, source_object_id: 'o-1' },
    { change: 'updated', amount: 12.5, source_object_id: 'o-1' },
  ])
})

test('an erased person gets into no file, and waiting sales are anonymized', { skip }, async () => {
  const tenant = await server.tenantWithServerKey('erasing')
  await post('/v1/track', tenant.trackingKey, {
    event_type: 'page_view',
    visitor: 'v-gone',
    user_id: 'u-gone',
  })
  await post('/v1/identify', tenant.trackingKey, {
    ...{ type: 'identify', anonymousId: 'v-gone', userId: 'u-gone', messageId: 'm-gone' },
    traits: { email: 'gone@example.com' },
  })
  await post('/v1/track', tenant.trackingKey, {
    event_type: 'convert',
    visitor: 'v-gone',
    data: { amount: 3 },
  })
  await server.settled()
  await server.admin.erasures.erase({ tenant: tenant.id, email: 'gone@example.com' })
  await flush()
  assert.deepEqual(await ask(`select id from ${events()} where tenant = ?`, tenant.id), [])
  assert.deepEqual(await ask(`select visitor, amount from ${conversions} where tenant = ?`, tenant.id), [
    { visitor: null, amount: 3 },
  ])
})

test('only the account that runs Kontor can read the files and enter the folders', async () => {
  const tenant = await server.anotherTenant('modes')
  await batch(tenant, 0, 2)
  await server.settled()
  await flush()
  const root = join(directory, `tenant=${tenant.id}`)
  const names = ['', ...(await readdir(root, { recursive: true }))]
  assert.ok(names.some(name => name.endsWith('.parquet')))
  for (const name of names) {
    const found = await stat(join(root, name))
    assert.equal((found.mode & 0o777).toString(8), found.isDirectory() ? '700' : '600', name)
  }
})

test('names with paths of senders and operators do not leave the folder of their tenant', async () => {
  const tenant = await server.anotherTenant('../../outside')
  const path = '../../../outside/%2e%2e/\u0000'
  await post('/v1/track', tenant.trackingKey, {
    event_type: path,
    visitor: path,
    event_id: path,
    data: { [path]: path },
  })
  await post('/v1/track', tenant.trackingKey, {
    event_type: 'convert',
    visitor: path,
    data: { order_id: path, amount: 1 },
  })
  await server.settled()
  const before = await filesOf()
  await flush()
  const written = (await filesOf()).filter(name => !before.includes(name))
  assert.equal(written.length, 2)
  for (const name of written)
    assert.match(name, new RegExp(`^tenant=${tenant.id}/table=\\w+/date=[\\d-]+/hour=\\d+/[\\w-]+\\.parquet$`))
  assert.ok(!(await readdir(join(directory, '..'))).includes('outside'))
})

test('the DuckDB queries of the guide work', { skip }, async () => {
  const guide = await readFile(new URL('../../docs/guides/archive.md', import.meta.url), 'utf8')
  const queries = [...guide.matchAll(/```sql[^\n]*\n([\s\S]*?)```/g)].map(([, sql]) => sql!)
  assert.ok(queries.length >= 3)
  for (const sql of queries) {
    const rows = await ask(sql.replaceAll('/srv/archive', directory).replace(/;\s*$/, ''))
    assert.ok(rows.length > 0, sql)
  }
})

test('files are written to a bucket too, and nothing is lost while it is unreachable', async () => {
  const bucket = await startBucket()
  after(bucket.close)
  const s3 = await openStorage('s3://archive/some/prefix', {
    ...NO_S3,
    ...bucket.access,
    endpoint: bucket.url,
  })
  await batch(server.tenant, 5_000, 10)
  await server.settled()
  const unreachable = await openStorage('s3://archive/x', {
    ...NO_S3,
    ...bucket.access,
    endpoint: 'http://127.0.0.1:1',
  })
  await assert.rejects(flush(unreachable))
  await flush(s3)
  const names = await bucket.names()
  assert.equal(names.filter(name => name.includes('/table=events/')).length, 1)
  assert.match(
    names[0]!,
    /^some\/prefix\/tenant=ten_\d+\/table=\w+\/date=\d{4}-\d\d-\d\d\/hour=\d\d\/[-0-9a-f]{36}\.parquet$/,
  )
  const refused = await openStorage('s3://archive', {
    ...{ ...NO_S3, ...bucket.access, endpoint: bucket.url },
    accessKeyId: 'UNKNOWN',
  })
  await assert.rejects(refused.put('x.parquet', Buffer.from('x')), /S3 responded with 403/)
})

test('rows that arrive during a flush wait for the next one, and the status counts rows', async () => {
  await flush()
  const { waiting } = await archiveView(server.pool)
  assert.equal(waiting, 0)
  const track = async (visitor: string) => {
    await post('/v1/track', server.tenant.trackingKey, { event_type: 'page_view', visitor })
    await server.settled()
  }
  for (const visitor of ['w-1', 'w-2', 'w-3']) await track(visitor)
  const broken: Storage = { put: () => Promise.reject(new Error('read-only')) }
  await assert.rejects(flush(broken), /read-only/)
  assert.equal((await archiveView(server.pool)).waiting, 3)
  let written = 0
  await flush({
    async put(path, bytes) {
      if (++written < 5) await track(`w-${3 + written}`)
      await storage.put(path, bytes)
    },
  })
  // The file of the failed flush, and one with what waited when this flush planned its own.
  assert.equal(written, 2)
  assert.equal((await archiveView(server.pool)).waiting, 1)
  await flush()
})

test('a disabled archive records nothing; after it is enabled again, new events are recorded', async () => {
  await switchArchive(server.pool, SYSTEM, false)
  await batch(server.tenant, 10_000, 5)
  await server.settled()
  assert.equal((await archiveView(server.pool)).waiting, 0)
  await switchArchive(server.pool, SYSTEM, true)
  await post('/v1/track', server.tenant.trackingKey, { event_type: 'page_view', visitor: 'v-1' })
  await server.settled()
  assert.equal((await archiveView(server.pool)).waiting, 1)
  const before = (await filesOf()).length
  // Stopping closes the files.
  await server.restart()
  assert.equal((await filesOf()).length, before + 1)
})
