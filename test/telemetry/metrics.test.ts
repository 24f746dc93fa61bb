import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startOps } from '../../src/http/ops.ts'
import { watchBacklog } from '../../src/overload/backlog.ts'
import { openMetrics } from '../../src/telemetry/metrics.ts'
import { eventually } from '../eventually.ts'
import { openShell } from '../http/shell.ts'

/** The value of a sample by its full name with labels. */
function sample(text: string, name: string): number | undefined {
  const line = text.split('\n').find(line => line.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1))
}

test('requests are counted by route, method and status class, never by URL', async t => {
  const { app, metrics } = await openShell(t, app => {
    app.get('/v1/things/:id', async () => ({}))
    app.post('/v1/things', async () => ({}))
  })
  for (const id of ['1', '2', '3']) await app.inject(`/v1/things/${id}`)
  await app.inject({ method: 'POST', url: '/v1/things', payload: '{' })
  await app.inject('/nope')
  await app.inject('/nope/%zz')

  const text = await metrics.text()
  assert.equal(sample(text, 'http_requests_total{method="GET",route="/v1/things/:id",status="2xx"}'), 3)
  assert.equal(sample(text, 'http_requests_total{method="POST",route="/v1/things",status="4xx"}'), 1)
  assert.equal(sample(text, 'http_requests_total{method="any",route="unmatched",status="4xx"}'), 1)
  assert.equal(sample(text, 'http_requests_total{method="any",route="unroutable",status="4xx"}'), 1)
  assert.equal(sample(text, 'http_request_duration_seconds_count{method="GET",route="/v1/things/:id"}'), 3)
  assert.doesNotMatch(text, /nope/)
  assert.equal(
    await metrics
      .text()
      .then(again => sample(again, 'http_requests_total{method="POST",route="/v1/things",status="4xx"}')),
    1,
  )
})

test('durations are counted in cumulative buckets, the last of which contains all', async () => {
  const metrics = openMetrics()
  const observe = metrics.request('GET', '/x')
  for (const seconds of [0.0001, 0.001, 0.0011, 3, 99]) observe(200, seconds)
  const text = await metrics.text()
  const bucket = (le: string) =>
    sample(text, `http_request_duration_seconds_bucket{method="GET",route="/x",le="${le}"}`)
  assert.deepEqual(['0.001', '0.0025', '2.5', '5', '10', '+Inf'].map(bucket), [2, 3, 3, 4, 4, 5])
  assert.equal(sample(text, 'http_request_duration_seconds_sum{method="GET",route="/x"}'), 102.0022)
  assert.match(text, /# TYPE http_request_duration_seconds histogram/)
})

test('all components report metrics', async () => {
  const metrics = openMetrics()
  metrics.accept.flushed(7, 0.002)
  metrics.accept.shed()
  metrics.inbound('src_1', 'accepted', 3)
  metrics.inbound('src_1', 'accepted')
  metrics.watchPool('requests', () => ({ totalCount: 5, idleCount: 2, waitingCount: 1 }))
  metrics.watchPipeline(async () => [{ partition: 3, entries: 12, seconds: 1.5 }])
  metrics.watchDeadLetters(async () => 4)
  metrics.watchFairQueue(() => 6)
  const text = await metrics.text()
  assert.equal(sample(text, 'kontor_flush_entries_sum'), 7)
  assert.equal(sample(text, 'kontor_log_append_seconds_count'), 1)
  assert.equal(sample(text, 'kontor_shed_total'), 1)
  assert.equal(sample(text, 'kontor_turns_waiting_requests'), 6)
  assert.equal(sample(text, 'kontor_inbound_events_total{source="src_1",outcome="accepted"}'), 4)
  assert.equal(sample(text, 'kontor_pool_total{pool="requests"}'), 5)
  assert.equal(sample(text, 'kontor_pool_idle{pool="requests"}'), 2)
  assert.equal(sample(text, 'kontor_pool_waiting{pool="requests"}'), 1)
  assert.equal(sample(text, 'kontor_pipeline_lag_entries{partition="3"}'), 12)
  assert.equal(sample(text, 'kontor_pipeline_lag_seconds{partition="3"}'), 1.5)
  assert.equal(sample(text, 'kontor_dead_letters'), 4)
  assert.match(text, /process_resident_memory_bytes/)
})

test('a backlog that may be full only because entries were counted twice is recounted immediately', async t => {
  const counts: ((entries: number) => void)[] = []
  const lag = () =>
    new Promise<{ partition: string; entries: number; oldestAt: null }[]>(resolve =>
      counts.push(entries => resolve([{ partition: 'postgres/0', entries, oldestAt: null }])),
    )
  // So large that the usual pause is longer than the test.
  const backlog = watchBacklog(lag, { max: 1_000, processes: 3e5 })
  t.after(backlog.stop)
  backlog.recordAppended(20)
  counts[0]!(990)
  await eventually('a count', async () => backlog.entries() === 1_010)
  assert.ok(backlog.isFull())
  await eventually('another count', async () => counts.length === 2)
  counts[1]!(990)
  await eventually('what is so', async () => backlog.entries() === 990)
  assert.ok(!backlog.isFull())
})

test('a metric that cannot be read does not affect the others', async () => {
  const metrics = openMetrics()
  metrics.watchPipeline(() => Promise.reject(new Error('database away')))
  metrics.watchDeadLetters(() => new Promise(() => {}))
  const text = await metrics.text()
  assert.doesNotMatch(text, /kontor_pipeline_lag_entries\{/)
  assert.match(text, /process_cpu_seconds_total/)
})

test('the operations port serves health, readiness and metrics', async t => {
  let readiness = async () => ({ ok: true, checks: { database: 'ok' } as Record<string, string> })
  const ops = await startOps({
    port: 0,
    host: '127.0.0.1',
    metrics: openMetrics(),
    readiness: () => readiness(),
  })
  t.after(() => ops.close())
  const get = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${ops.port}${path}`, { method })
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      text: await response.text(),
    }
  }
  assert.equal((await get('/healthz')).status, 200)
  assert.equal((await get('/healthz/')).status, 200)
  assert.deepEqual(JSON.parse((await get('/readyz')).text), { status: 'ready', checks: { database: 'ok' } })
  readiness = async () => ({ ok: false, checks: { database: 'connection refused' } })
  const away = await get('/readyz?verbose')
  assert.equal(away.status, 503)
  assert.deepEqual(JSON.parse(away.text).checks, { database: 'connection refused' })
  readiness = () => Promise.reject(new Error('no idea'))
  assert.equal((await get('/readyz')).status, 503)
  readiness = () => new Promise(() => {})
  assert.equal((await get('/readyz')).status, 503)
  assert.equal((await get('/healthz')).status, 200)

  const metrics = await get('/metrics')
  assert.match(String(metrics.type), /^text\/plain/)
  assert.match(metrics.text, /^# HELP/m)
  assert.equal((await get('/')).status, 404)
  assert.equal((await get('/healthz', 'POST')).status, 405)
  assert.equal((await get('/healthz', 'HEAD')).text, '')
})

test('a port in use is reported to the caller', async t => {
  const options = {
    port: 0,
    host: '127.0.0.1',
    metrics: openMetrics(),
    readiness: async () => ({ ok: true, checks: {} }),
  }
  const ops = await startOps(options)
  t.after(() => ops.close())
  await assert.rejects(startOps({ ...options, port: ops.port }), { code: 'EADDRINUSE' })
})
