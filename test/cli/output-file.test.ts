import assert from 'node:assert/strict'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeOutputFile } from '../../src/cli/output-file.ts'
import { eventually } from '../eventually.ts'
import { temporaryDirectory } from './kontor.ts'

// More than one write.
const TEXT = 'x'.repeat(100_000)

test('of two commands that write the same file at once, each writes a whole file, and the later one wins', async t => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'events.ndjson')
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  async function* slow() {
    yield `slow ${TEXT}`
    await gate
    yield ' slow'
  }
  async function* fast() {
    yield `fast ${TEXT}`
    yield ' fast'
  }
  const first = writeOutputFile(path, slow())
  await eventually('the first command to write', async () => (await readdir(directory)).length > 0)
  const bytes = await writeOutputFile(path, fast())
  assert.equal(await readFile(path, 'utf8'), `fast ${TEXT} fast`)
  assert.equal(bytes, TEXT.length + 10)
  const [unfinished] = (await readdir(directory)).filter(name => name !== 'events.ndjson')
  assert.match(unfinished!, /^events\.ndjson\.\w+\.partial$/)
  open()
  await first
  assert.equal(await readFile(path, 'utf8'), `slow ${TEXT} slow`)
  assert.deepEqual(await readdir(directory), ['events.ndjson'])
  assert.equal((await stat(path)).mode & 0o077, 0)
})

test('if an export fails, the existing file stays and no partial file remains', async t => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'events.ndjson')
  await writeFile(path, 'yesterday')
  async function* failing() {
    yield TEXT
    throw new Error('the connection was lost')
  }
  await assert.rejects(writeOutputFile(path, failing()), /the connection was lost/)
  assert.deepEqual(await readdir(directory), ['events.ndjson'])
  assert.equal(await readFile(path, 'utf8'), 'yesterday')
})
