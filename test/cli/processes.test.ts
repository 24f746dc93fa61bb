import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { test } from 'node:test'
import { testDatabase } from '../database.ts'
import { eventually } from '../eventually.ts'
import { END_OF_BANNER, hears, START_SETTINGS, startKontor, temporaryDirectory } from './kontor.ts'

/** Uses a new connection, which any of the processes may accept. */
function receive(
  url: string,
  { id, token }: { id: string; token: string },
  eventId: string,
): Promise<{ accepted: number }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/ingest/inbound/${id}`, { method: 'POST', agent: false, headers }, answer => {
      json(answer).then(body => resolve(body as { accepted: number }), reject)
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ inbound_event_id: eventId, event_type: 'a', payload: {} }))
  })
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function listChildren(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(' ').filter(Boolean).map(Number)
}

test('several processes serve one port with a shared budget and shared metrics, and survive the loss of any process', async t => {
  const database = await testDatabase({ partitioned: true })
  t.after(() => database.drop())
  const dataDir = `${await temporaryDirectory(t)}/data`
  const env = { ...START_SETTINGS, DATABASE_URL: database.url, KONTOR_DATA_DIR: dataDir, KONTOR_PROCESSES: '2' }
  const server = startKontor(t, ['start', '--port', '0'], { ...env, KONTOR_USER: 'nobody' })
  await hears(server, END_OF_BANNER)
  const [, url] = server.err().match(/is running at (\S+)/)!
  const [, opsUrl] = server.err().match(/Operations +(http:\/\/[^/]+)/)!
  const keys = await readFile(`${dataDir}/keys`, 'utf8')
  const [[key], [adminKey]] = [keys.match(/private-\w+/)!, keys.match(/adm_\w+/)!]
  const processes = await listChildren(server.child.pid!)
  assert.equal(processes.length, 2)

  const created = await fetch(`${url}/admin/v1/sources`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ tenant: 'default', type: 'webhook', overflow: 'drop' },
      rate_limit: { events: 5, per_seconds: 3600 },
    }),
  })
  assert.equal(created.status, 201)
  const source = (await created.json()) as { id: string; token: string }
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => receive(url!, source, `e-${i}`)))
  assert.equal(
    answers.reduce((sum, { accepted }) => sum + accepted, 0),
    5,
  )

  await eventually('the scrape has the requests of both', async () => {
    const text = await (await fetch(`${opsUrl}/metrics`)).text()
    const [, count] = text.match(/http_requests_total\{[^}]*inbound[^}]*2xx[^}]*\} (\d+)/) ?? []
    return Number(count) === 20
  })

  process.kill(processes[0]!, 'SIGKILL')
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', prefer: 'wait=10' }
  const contact = { entityType: 'contact', id: 'c', sourceUpdatedAt: '2026-01-01T00:00:00Z', data: {} }
  const write = () => fetch(`${url}/v1/contacts`, { method: 'POST', headers, body: JSON.stringify(contact) })
  // Connections of the killed process break. A retry succeeds.
  const written = await eventually('an answer of the other one', () => write().catch(() => null))
  assert.equal(written.headers.get('preference-applied'), 'wait=10')
  const replaced = async () => (await listChildren(server.child.pid!)).filter(pid => pid !== processes[0])
  await eventually('another one that has started', async () => (await replaced()).length === 2)

  const left = await replaced()
  server.child.kill('SIGKILL')
  await server.ended
  await eventually('the end of what it looked after', () => left.every(pid => !isAlive(pid)))
})
