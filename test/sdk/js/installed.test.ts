import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { temporaryDirectory } from '../../cli/kontor.ts'
import { makeSource } from '../../inbound/source.ts'
import { sharedServer, type TestServer, type TestTenant } from '../../server.ts'
import { emptyProject, nodes, npm, type Project } from './project.ts'

let server: TestServer
let project: Project
before(async () => {
  ;[server, project] = await Promise.all([sharedServer(), emptyProject()])
})
after(() => Promise.all([server.close(), project.remove()]))

const MAX_CORE_BYTES = 12_500

/** 120 customers at 10 EUR a month. */
async function sellSubscriptions(tenant: TestTenant): Promise<void> {
  const source = await makeSource(server, { tenant: tenant.id })
  const now = Date.now()
  const at = (days: number) => new Date(now + days * 86_400_000).toISOString()
  const events = Array.from({ length: 120 }, (_, n) => ({
    inbound_event_id: `sub-${n}`,
    event_type: 'subscription.created',
    payload: {
      id: `sub-${n}`,
      customer: `cus-${n}`,
      status: 'active',
      currency: 'EUR',
      started_at: at(-20),
      current_period_start: at(-20),
      current_period_end: at(10),
      updated_at: at(-20),
      items: [{ id: `item-${n}`, name: 'Tea', quantity: 1, unit_amount: 10, interval: 'month', interval_count: 1 }],
    },
  }))
  const { status, body } = await source.post(events)
  assert.deepEqual([status, body.accepted], [200, 120])
}

for (const [version, node] of await nodes()) {
  test(`every call works, with Node ${version}`, async () => {
    const tenant = await server.anotherTenant(`shop ${version}`)
    const environment = {
      KONTOR_URL: server.url,
      PRIVATE_KEY: tenant.privateKey,
      TRACKING_KEY: tenant.trackingKey,
    }
    await project.run(node, 'write.mjs', environment)
    await sellSubscriptions(tenant)
    await server.settled()
    await project.run(node, 'read.mjs', environment)
  })
}

test('a server serves the package, and npm pack in sdk/js creates the same files', async t => {
  const folder = await temporaryDirectory(t)
  await writeFile(join(folder, 'package.json'), '{}')
  await npm(folder, ['install', '--no-audit', '--no-fund', `${server.url}/sdk/js.tgz`])
  const sdk = fileURLToPath(new URL('../../../sdk/js/', import.meta.url))
  await npm(sdk, ['pack', '--pack-destination', folder])
  execFileSync('tar', ['-xzf', join(folder, 'kontor-sdk-0.1.0.tgz'), '-C', folder])
  const filesOf = (directory: string) => readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()
  const installed = join(folder, 'node_modules/@kontor/sdk')
  assert.deepEqual(filesOf(installed), filesOf(join(folder, 'package')))
  for (const file of filesOf(join(installed, 'dist')))
    assert.equal(
      await readFile(join(installed, 'dist', file), 'utf8'),
      await readFile(join(folder, 'package/dist', file), 'utf8'),
    )
  // CommonJS
  const main = execFileSync(process.execPath, ['-p', "typeof require('@kontor/sdk').Kontor"], { cwd: folder })
  assert.equal(`${main}`, 'function\n')
})

test('the package has no dependencies, and holds what it exports and no more', async () => {
  const manifest = JSON.parse(await readFile(join(project.installed, 'package.json'), 'utf8'))
  assert.equal(manifest.dependencies, undefined)
  assert.equal(manifest.peerDependencies, undefined)
  const lock = JSON.parse(await readFile(join(project.directory, 'package-lock.json'), 'utf8'))
  assert.deepEqual(Object.keys(lock.packages), ['', 'node_modules/@kontor/sdk'])
  for (const { types, default: script } of ['.', './webhooks', './file', './indexeddb'].map(
    name => manifest.exports[name],
  ))
    for (const file of [types, script]) assert.ok(await readFile(join(project.installed, file), 'utf8'))
  for (const file of ['README.md', 'LICENSE']) assert.ok(await readFile(join(project.installed, file), 'utf8'))
})

test(`the core is at most ${MAX_CORE_BYTES} bytes, minified`, async () => {
  const { outputFiles } = await build({
    entryPoints: [join(project.installed, 'dist/index.js')],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
  })
  const bytes = outputFiles[0]!.contents.length
  assert.ok(bytes <= MAX_CORE_BYTES, `${bytes} bytes`)
})
