import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findHome } from '../../embedded-postgres/home.ts'
import { findPostmaster } from '../../embedded-postgres/postmaster.ts'
import { isAlive } from '../../embedded-postgres/processes.ts'
import { clusterParents } from '../database.ts'
import { eventually } from '../eventually.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

// The global setup of `npm test`.
const SETUP = `
  const { globalSetup } = await import('./test/global-setup.ts')
  await globalSetup()
  console.log('ready')
  setInterval(() => {}, 60_000)`

test('an aborted test run leaves no PostgreSQL running', async () => {
  const run = spawn(process.execPath, ['--input-type=module', '-e', SETUP], {
    ...{ cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
  })
  const exited = once(run, 'exit')
  await Promise.race([once(run.stdout!, 'data'), exited])
  const paths = clusterParents.flatMap(parent => readdirSync(parent).map(name => join(parent, name)))
  const directory = paths.find(path => path.includes(`/kontor-test-${run.pid}-`))!
  const { home } = (await findHome(directory))!
  const postmaster = (await findPostmaster(home))!
  run.kill('SIGINT')
  await exited
  await eventually('its PostgreSQL to end', () => !isAlive(postmaster), { withinMs: 20_000 })
  assert.ok(!existsSync(directory))
})
