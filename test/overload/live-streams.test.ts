import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type OwnServer, startServer } from '../server.ts'

let server: OwnServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

test('tenants that take as many live streams as they can leave one for every other tenant', async t => {
  const responses: Response[] = []
  const ending = new AbortController()
  t.after(() => ending.abort())
  const open = async (key: string) => {
    const response = await fetch(`${server.url}/v1/events/live`, {
      headers: { authorization: `Bearer ${key}` },
      signal: ending.signal,
    })
    // A response that is not referenced is closed.
    responses.push(response)
    return response.status
  }
  const openAll = async (key: string) => {
    let opened = 0
    while ((await open(key)) === 200) opened++
    return opened
  }
  const keys: string[] = []
  for (let i = 0; i < 5; i++) keys.push((await server.anotherTenant(`live ${i}`)).privateKey)
  const opened: number[] = []
  for (const key of keys) opened.push(await openAll(key))
  assert.deepEqual(opened, [25, 25, 25, 1, 1])
  assert.equal(await open(server.tenant.privateKey), 200)
})
