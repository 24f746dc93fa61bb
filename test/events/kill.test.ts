import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../embedded-postgres/socket.ts'
import { hears, type Running, startKontor } from '../cli/kontor.ts'
import { findPostmasterIn, temporaryDirectory } from '../embedded-postgres/directories.ts'
import { eventually } from '../eventually.ts'
import { isLong } from '../long.ts'

// KONTOR_TEST_KILL_EVENTS=1000000 for a full run.
const EVENTS = Number(process.env.KONTOR_TEST_KILL_EVENTS ?? (isLong ? 12_000 : 6_000))
const PER_BATCH = 200
const SENDERS = 4
const REPEATED = 0.3

test(`${EVENTS} events sent with repeats, and with two kill -9 in between, are stored once each`, {
  timeout: 3_600_000,
}, async t => {
  const dataDir = join(await temporaryDirectory(t, 'data'), 'data')
  const service = await openService(t, dataDir)
  const batches = makeBatches()
  const startedAt = performance.now()
  const kills = [
    { after: Math.floor(batches.length * 0.3), alsoPostgres: false },
    { after: Math.floor(batches.length * 0.6), alsoPostgres: true },
  ]
  let next = 0
  let acknowledged = 0
  let tries = 0
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      while (next < batches.length) {
        const body = batches[next++]!
        do tries++
        while (!(await service.send(body)))
        acknowledged++
        const kill = kills[0]
        if (kill && acknowledged >= kill.after) {
          kills.shift()
          await service.kill(kill.alsoPostgres)
        }
      }
    }),
  )
  const sentMs = performance.now() - startedAt
  const rows = await service.countWhenDone()
  const doneMs = performance.now() - startedAt
  t.diagnostic(
    `${batches.length} batches in ${tries} requests, accepted in ${Math.round(sentMs)} ms, ` +
      `all applied and counted after ${Math.round(doneMs)} ms; resident memory ${service.residentMb()} MB`,
  )
  assert.ok(tries > batches.length, 'senders retried after a kill')
  assert.equal(rows, EVENTS)
})

/** Every event is in at least one batch, and about 30 % are repeated later. */
function makeBatches(): string[] {
  const ids: number[] = []
  for (let id = 0; id < EVENTS; id++) {
    ids.push(id)
    // pseudo-random repeats: from the same batch, the previous one, or much earlier ones
    const draw = ((id * 2_654_435_761) >>> 0) / 2 ** 32
    if (draw < REPEATED) ids.push(Math.max(0, Math.floor(id - draw * draw * 11 * id)))
  }
  const batches: string[] = []
  for (let from = 0; from < ids.length; from += PER_BATCH) {
    batches.push(JSON.stringify({ batch: ids.slice(from, from + PER_BATCH).map(eventOf) }))
  }
  return batches
}

function eventOf(id: number) {
  return {
    type: 'track',
    event: id % 10 ? 'Viewed' : 'Added',
    messageId: `m-${id}`,
    anonymousId: `visitor-${id % 997}`,
    properties: { id, page: `https://shop.example/${id % 50}` },
  }
}

async function openService(t: TestContext, dataDir: string) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const words = ['start', '--port', String(port), '--data', dataDir]
  const env = { KONTOR_OPS_PORT: 'off', KONTOR_LOG_LEVEL: 'warn' }
  let running: Running = startKontor(t, words, env)
  await answers(url, running)
  await hears(running, /Stop +Ctrl-C/)
  const keys = readFileSync(join(dataDir, 'keys'), 'utf8')
  const secret = (prefix: string) => new RegExp(`${prefix}\\w+`).exec(keys)![0]
  const [trackingKey, privateKey] = [secret('trk_'), secret('private-')]

  async function count(): Promise<number> {
    let rows = 0
    for (let cursor = ''; ; ) {
      const response = await fetch(`${url}/v1/events?limit=100${cursor}`, {
        headers: { authorization: `Bearer ${privateKey}` },
      })
      const page = (await response.json()) as { results: unknown[]; has_more: boolean; next_cursor: string }
      rows += page.results.length
      if (!page.has_more) return rows
      cursor = `&cursor=${page.next_cursor}`
    }
  }

  return {
    /** Returns whether the request was acknowledged. */
    async send(body: string): Promise<boolean> {
      try {
        const response = await fetch(`${url}/v1/batch`, {
          method: 'POST',
          headers: { authorization: `Bearer ${trackingKey}` },
          body,
        })
        await response.text()
        if (response.status === 200) return true
        assert.equal(response.status, 503)
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
      }
      await sleep(50)
      return false
    },
    async kill(alsoPostgres: boolean): Promise<void> {
      const postmaster = alsoPostgres ? await findPostmasterIn(dataDir) : null
      running.child.kill('SIGKILL')
      if (postmaster) process.kill(postmaster.pid, 'SIGKILL')
      await running.ended
      running = startKontor(t, words, env)
      await answers(url, running)
    },
    /** Sends markers through all partitions and waits for them: everything accepted earlier is then applied. Returns the number of events. */
    async countWhenDone(): Promise<number> {
      const markers = Array.from({ length: 200 }, (_, i) => `marker-${i}`)
      for (const id of markers) {
        const body = JSON.stringify({ type: 'page', messageId: id, anonymousId: id })
        const { status } = await fetch(`${url}/v1/page`, {
          method: 'POST',
          headers: { authorization: `Bearer ${trackingKey}` },
          body,
        })
        assert.equal(status, 200)
      }
      for (const id of markers) {
        await eventually(`${id} to be stored`, () => isStored(url, privateKey, id), { withinMs: 3_600_000 })
      }
      return (await count()) - markers.length
    },
    residentMb(): number {
      const status = readFileSync(`/proc/${running.child.pid}/status`, 'utf8')
      return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024)
    },
  }
}

async function isStored(url: string, key: string, id: string): Promise<boolean> {
  const response = await fetch(`${url}/v1/events/lookup?event_id=${id}`, {
    headers: { authorization: `Bearer ${key}` },
  })
  const { status } = (await response.json()) as { status: string }
  return status === 'stored'
}

async function answers(url: string, { child, err }: Running): Promise<void> {
  await eventually('the service to answer', async () => {
    assert.equal(child.exitCode, null, err())
    return fetch(url).then(
      ({ ok }) => ok,
      () => false,
    )
  })
}
