import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.ts'
import { startRuntime } from '../../src/runtime/runtime.ts'
import { kontor } from '../cli/kontor.ts'
import { testDatabase } from '../database.ts'
import { type Answers, FIXTURE_SECRET_KEY, fetchAnswers } from './fixture.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))

test('released migrations are unchanged, and new ones come after them', () => {
  const lines = readFileSync(`${folder}migrations.sha256`, 'utf8').trim().split('\n')
  const released = lines.map(line => line.split(/ [ *]migrations\//) as [checksum: string, name: string])
  const migrations = new URL('../../migrations/', import.meta.url)
  for (const [checksum, name] of released)
    assert.equal(hash('sha256', readFileSync(new URL(name, migrations))), checksum, `${name} was edited`)
  const names = new Set(released.map(([, name]) => name))
  const last = [...names].sort().at(-1)!
  for (const name of readdirSync(migrations))
    assert.ok(names.has(name) || name > last, `${name} comes before ${last}, which was released`)
})

for (const file of globSync('kontor-*.backup', { cwd: folder })) {
  test(`${file} is restored, migrated, and returns the same responses`, async t => {
    const database = await testDatabase({ empty: true })
    t.after(() => database.drop())
    process.env.DATABASE_URL = database.url
    process.env.KONTOR_SECRET_KEY = FIXTURE_SECRET_KEY
    t.after(() => {
      delete process.env.DATABASE_URL
      delete process.env.KONTOR_SECRET_KEY
    })
    const restored = await kontor('restore', '--from', `${folder}${file}`)
    assert.equal(restored.code, 0, restored.err)
    const config = readConfig({
      ...{ DATABASE_URL: database.url, KONTOR_SECRET_KEY: FIXTURE_SECRET_KEY },
      ...{ KONTOR_PORT: '0', KONTOR_OPS_PORT: 'off' },
    })
    const { key, answers } = JSON.parse(readFileSync(`${folder}${file.replace('.backup', '.json')}`, 'utf8')) as {
      key: string
      answers: Answers
    }
    const runtime = await startRuntime({
      config,
      connection: { url: database.url },
      log: pino({ level: 'silent' }),
    })
    try {
      assertHas(await fetchAnswers(runtime.url, key, Object.keys(answers)), answers, file)
    } finally {
      await runtime.close()
    }
  })
}

/** Every earlier field exists with the same value, except the time of the response. A later version may add fields. */
function assertHas(actual: unknown, before: unknown, where: string): void {
  if (typeof before !== 'object' || before === null) return void assert.deepEqual(actual, before, where)
  if (Array.isArray(before)) assert.equal((actual as unknown[])?.length, before.length, `${where}: how many`)
  assert.ok(typeof actual === 'object' && actual !== null, `${where} is gone`)
  for (const [key, value] of Object.entries(before))
    if (key !== 'as_of') assertHas((actual as Record<string, unknown>)[key], value, `${where} ${key}`)
}
