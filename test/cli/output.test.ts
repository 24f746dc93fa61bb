import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readServerFile } from '../../src/cli/server-file.ts'
import { findPostmasterIn } from '../embedded-postgres/directories.ts'
import { eventually } from '../eventually.ts'
import { type Running, START_SETTINGS, startProgram, stop, temporaryDirectory } from './kontor.ts'

const main = fileURLToPath(new URL('../../src/main.mjs', import.meta.url))

// Each write to this device fails as on a full disk.
const FULL = '/dev/full'

function startRedirected(t: TestContext, redirect: string, words: string[], env: Record<string, string> = {}): Running {
  return startProgram(t, 'sh', ['-c', `exec "$@" ${redirect}`, 'sh', process.execPath, main, ...words], env)
}

test('a full disk of the log stops neither ingestion nor an orderly stop', {
  skip: process.platform !== 'linux',
}, async t => {
  const dataDir = `${await temporaryDirectory(t)}/data`
  for (const format of ['json', 'pretty']) {
    const env = { ...START_SETTINGS, KONTOR_LOG_LEVEL: 'trace', KONTOR_LOG_FORMAT: format }
    const server = startRedirected(t, `2>${FULL}`, ['start', '--port', '0', '--data', dataDir], env)
    const announced = await eventually('the server to start', async () => {
      assert.equal(server.child.exitCode, null)
      const found = await readServerFile(dataDir)
      return found?.pid === server.child.pid && found
    })
    const keys = await eventually('the keys', () => readFile(`${dataDir}/keys`, 'utf8').catch(() => null))
    const [, key] = /TRACKING_KEY=(.+)/.exec(keys)!
    const track = async () => {
      const body = JSON.stringify({ event_type: 'page_view' })
      const response = await fetch(`${announced.url}/v1/track/?key=${key}`, { method: 'POST', body })
      return response.status
    }
    assert.equal(await track(), 200)
    // All threads and the restart of PostgreSQL log this outage.
    const { pid } = (await findPostmasterIn(dataDir))!
    process.kill(pid, 'SIGQUIT')
    await eventually('PostgreSQL to restart', async () => {
      const found = await findPostmasterIn(dataDir)
      return found?.status === 'ready' && found.pid !== pid
    })
    await eventually('an event to be accepted', async () => (await track()) === 200)
    assert.equal(await stop(server), 0)
    assert.equal(await findPostmasterIn(dataDir), null)
  }
})

test('a result that cannot be written is reported in one sentence, after PostgreSQL is stopped', {
  skip: process.platform !== 'linux',
}, async t => {
  const dataDir = `${await temporaryDirectory(t)}/data`
  const contact = { entityType: 'contact', id: 'c-1', sourceUpdatedAt: '2026-01-31T12:00:00Z', data: {} }
  const create = startRedirected(t, '', ['tenant', 'create', 'acme', '--data', dataDir])
  assert.equal(await create.ended, 0, create.err())
  const file = `${dataDir}/contacts.ndjson`
  await writeFile(file, `${JSON.stringify(contact)}\n`)
  const fill = startRedirected(t, '', ['import', 'contacts', file, '--tenant', 'acme', '--data', dataDir])
  assert.equal(await fill.ended, 0, fill.err())
  for (const words of [
    ['tenant', 'list'],
    ['export', 'contacts', '--tenant', 'acme'],
    ['person', 'export', '--tenant', 'acme', 'contact:c-1'],
  ]) {
    const run = startRedirected(t, `>${FULL}`, [...words, '--data', dataDir])
    assert.equal(await run.ended, 1)
    assert.equal(run.err(), 'The output cannot be written: no space left on device.\n', words.join(' '))
    assert.equal(await findPostmasterIn(dataDir), null)
  }
  const silent = startRedirected(t, `>/dev/null 2>${FULL}`, ['tenant', 'list', '--data', dataDir])
  assert.equal(await silent.ended, 0)
})
