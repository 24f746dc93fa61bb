import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { withLock } from '../../embedded-postgres/lock.ts'
import { temporaryDirectory } from './directories.ts'

const lockModule = new URL('../../embedded-postgres/lock.ts', import.meta.url).href

function node(script: string, ...args: string[]) {
  return spawn(process.execPath, ['--input-type=module', '-e', script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

test('no update is lost when processes change a file under the lock', async t => {
  const directory = await temporaryDirectory(t)
  const file = join(directory, 'counter')
  await writeFile(file, '0')
  const script = `
    import { readFile, writeFile } from 'node:fs/promises'
    import { withLock } from ${JSON.stringify(lockModule)}
    const [directory, file] = process.argv.slice(1)
    for (let n = 0; n < 25; n++)
      await withLock(directory, 60000, async () => writeFile(file, String(Number(await readFile(file, 'utf8')) + 1)))`
  const counters = Array.from({ length: 4 }, () => node(script, join(directory, 'lock'), file))
  await Promise.all(counters.map(counter => once(counter, 'exit')))
  assert.equal(await readFile(file, 'utf8'), '100')
  assert.equal((await readdir(join(directory, 'lock'))).length, 1)
})

test('the lock of a killed process is free, the lock of a live one is not', async t => {
  const directory = await temporaryDirectory(t)
  const script = `
    import { withLock } from ${JSON.stringify(lockModule)}
    await withLock(process.argv[1], 1000, () => { console.log('held'); return new Promise(() => setInterval(() => {}, 1000)) })`
  const holder = node(script, directory)
  await once(createInterface(holder.stdout), 'line')
  await assert.rejects(
    withLock(directory, 50, async () => 'mine'),
    (error: Error) => error.message.includes(`(${holder.pid})`),
  )
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  assert.equal(await withLock(directory, 50, async () => 'mine'), 'mine')
})

test('a lock file that a power failure made unreadable counts as free', async t => {
  const directory = await temporaryDirectory(t)
  await mkdir(join(directory, 'lock-7'))
  await writeFile(join(directory, 'lock-7', 'holder'), '{"pid": 1')
  await mkdir(join(directory, 'lock-8'))
  assert.equal(await withLock(directory, 1000, async () => 'mine'), 'mine')
})
