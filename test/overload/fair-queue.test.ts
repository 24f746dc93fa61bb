import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import test from 'node:test'
import fc from 'fast-check'
import fastify from 'fastify'
import type { App } from '../../src/http/app.ts'
import { queueWrites } from '../../src/http/overload.ts'
import { openFairQueue } from '../../src/overload/fair-queue.ts'
import { eventually } from '../eventually.ts'

const still = { now: () => 0 }
/** The capacity on a busy machine, reduced from 24 to 1. */
const busy = { current: () => 1, max: 24, onWait: () => undefined }

test('a flooding tenant waits, its neighbor goes first, and a sole tenant never waits', () => {
  const queue = openFairQueue({ ...still, capacity: 4 })
  const started: string[] = []
  const enter = (name: string) => queue.enter(name[0]!, 1, () => started.push(name))
  for (let i = 1; i <= 6; i++) enter(`a${i}`)
  assert.deepEqual(started, ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'], 'no other tenant is active')
  enter('b1')
  assert.equal(started.at(-1), 'b1')
  for (let i = 7; i <= 9; i++) enter(`a${i}`)
  enter('b2')
  enter('b3')
  assert.deepEqual(started.slice(7), ['b2'], 'its share is two of four')
  // six of a and two of b run: b has fewer and goes first
  queue.leave('b', 1)
  assert.equal(started.at(-1), 'b3')
  for (let i = 0; i < 5; i++) queue.leave('a', 1)
  assert.deepEqual(started.slice(9), ['a7'])
  for (let i = 0; i < 2; i++) queue.leave('b', 1)
  assert.deepEqual(started.slice(10), ['a8', 'a9'])
})

test('a sole tenant can have a limit of its own; a tenant that arrives then does not wait', () => {
  const queue = openFairQueue({ ...still, capacity: 2, soleTenantCapacity: 4 })
  const started: string[] = []
  const enter = (name: string) => queue.enter(name[0]!, 1, () => started.push(name))
  for (let i = 1; i <= 6; i++) enter(`a${i}`)
  enter('b1')
  assert.deepEqual(started, ['a1', 'a2', 'a3', 'a4', 'b1'])
  for (let i = 0; i < 3; i++) queue.leave('a', 1)
  assert.deepEqual(started.slice(5), [], 'one of each runs, which is the capacity for two')
  queue.leave('b', 1)
  assert.deepEqual(started.slice(5), ['a5'])
})

test('unauthenticated senders do not make a sole tenant share; beside two tenants they queue', () => {
  let at = 0
  const queue = openFairQueue({ capacity: 1, now: () => at })
  const started: string[] = []
  const enter = (name: string) => queue.enter(name[0]!, 1, () => started.push(name), name[0] !== '?')
  for (const name of ['?1', 'a1', '?2', 'a2', 'a3']) enter(name)
  assert.deepEqual(started, ['?1', 'a1', '?2', 'a2', 'a3'])
  enter('b1')
  for (const name of ['?3', 'a4', 'b2']) enter(name)
  assert.deepEqual(started.slice(5), ['b1'])
  for (const name of ['?', '?', 'a', 'a', 'a', 'b']) queue.leave(name, 1)
  assert.deepEqual(started.slice(6).toSorted(), ['?3', 'a4', 'b2'])
  for (const name of ['?', 'a', 'b']) queue.leave(name, 1)
  at += 10_000
  for (const name of ['?4', 'a5', '?5', 'a6']) enter(name)
  assert.deepEqual(started.slice(9), ['?4', 'a5', '?5', 'a6'], 'b is no longer active')
})

test('a tenant with little recent usage may run several requests beside a flood, until it floods itself', () => {
  let at = 0
  const queue = openFairQueue({ capacity: busy, now: () => at })
  const started: string[] = []
  const enter = (name: string) => queue.enter(name[0]!, 1, () => started.push(name))
  enter('q1')
  for (let i = 1; i <= 20; i++) {
    enter(`f${i}`)
    queue.leave('f', 1)
    at += 10
  }
  assert.equal(queue.waiting(), 0)
  enter('f21')
  enter('f22')
  enter('q2')
  enter('q3')
  queue.enter('?', 1, () => started.push('?1'), false)
  queue.enter('?', 1, () => started.push('?2'), false)
  assert.deepEqual(started.slice(21), ['f21', 'q2', 'q3', '?1'], 'unauthenticated senders have one each')
  // It has used as much as the flood: its further requests wait like the flood.
  for (let i = 4; i <= 30; i++) enter(`q${i}`)
  assert.equal(started.filter(name => name.startsWith('q')).length, 12, 'at most half of the capacity')
  for (let i = 1; i <= 12; i++) queue.leave('q', 1)
  assert.ok(queue.waiting() > 1)
})

test('requests that end as soon as they start do not recurse', () => {
  const queue = openFairQueue({ ...still, capacity: 1 })
  let ended = 0
  queue.enter('a', 1, () => undefined)
  queue.enter('b', 1, () => undefined)
  for (let i = 0; i < 5_000; i++)
    queue.enter('a', 1, () => {
      ended++
      queue.leave('a', 1)
    })
  assert.equal(ended, 0)
  queue.leave('a', 1)
  assert.equal(ended, 5_000)
})

test('in any order of arrivals, ends and cancellations, every other request runs, in order within its tenant', () => {
  const request = fc.record({
    tenant: fc.constantFrom('a', 'b', 'c'),
    weight: fc.integer({ min: 1, max: 8 }),
  })
  const step = fc.oneof(
    { weight: 3, arbitrary: request },
    { weight: 2, arbitrary: fc.constant('end' as const) },
    { weight: 1, arbitrary: fc.record({ leaves: fc.nat(199) }) },
  )
  const limits = fc.constantFrom<Omit<Parameters<typeof openFairQueue>[0], 'now'>>(
    { capacity: 8 },
    { capacity: 8, soleTenantCapacity: 12 },
    { capacity: busy },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), limits, (steps, limit) => {
      const queue = openFairQueue({ ...still, ...limit })
      const running: { tenant: string; weight: number }[] = []
      const order: Record<string, number[]> = { a: [], b: [], c: [] }
      const leave: (() => void)[] = []
      const left = new Set<number>()
      let entered = 0
      const end = () => {
        const ended = running.shift()
        if (ended) queue.leave(ended.tenant, ended.weight)
      }
      for (const each of steps) {
        if (each === 'end') end()
        else if ('leaves' in each) {
          const number = each.leaves
          leave[number]?.()
          if (number < entered && !Object.values(order).flat().includes(number)) left.add(number)
        } else {
          const number = entered++
          const isIdle = !running.some(({ tenant }) => tenant === each.tenant)
          leave[number] = queue.enter(each.tenant, each.weight, () => {
            running.push(each)
            order[each.tenant]!.push(number)
          })
          if (isIdle) assert.ok(order[each.tenant]!.includes(number), 'a tenant without running requests does not wait')
        }
      }
      while (running.length > 0) end()
      assert.equal(queue.running(), 0)
      const started = Object.values(order).flat()
      assert.equal(started.length, entered - left.size)
      assert.ok(!started.some(number => left.has(number)))
      for (const numbers of Object.values(order))
        assert.deepEqual(
          numbers,
          numbers.toSorted((a, b) => a - b),
        )
    }),
  )
})

test('a request leaves the queue when it is answered, rejected, fails or is aborted', async t => {
  const queue = openFairQueue({ ...still, capacity: 1 })
  const app = fastify() as unknown as App
  app.decorateRequest('caller', null as never)
  app.decorateRequest('heldBytes', 0)
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    request.caller = { tenantId: Number(request.headers['x-tenant']) } as never
    request.heldBytes = Number(request.headers['content-length'])
    done()
  })
  queueWrites(app, queue)
  const held = Promise.withResolvers<void>()
  app.post('/answered', async () => ({}))
  app.post('/fails', async () => {
    throw new Error('no')
  })
  app.post('/held', async () => {
    await held.promise
    return {}
  })
  app.post('/ends', async request => {
    request.leaveWriteQueue()
    await held.promise
    return {}
  })
  app.post('/rejected', { schema: { body: { type: 'object', required: ['a'] } } }, async () => ({}))
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as { port: number }
  const post = (path: string, tenant: string) =>
    fetch(`http://127.0.0.1:${port}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tenant': tenant },
      body: '{}',
    })

  const ended = post('ends', '1')
  const first = [post('held', '1'), post('held', '2')]
  await eventually('both are running, and the one that left is not', () => queue.running() === 2)
  // These wait behind requests of their own tenant; one of them disconnects.
  const waiting = ['answered', 'fails', 'rejected'].map(path => post(path, '1'))
  const socket = connect(port, '127.0.0.1')
  socket.write(
    'POST /answered HTTP/1.1\r\nhost: x\r\nx-tenant: 2\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  )
  await eventually('four wait', () => app.server.listening)
  socket.destroy()
  await once(socket, 'close')
  held.resolve()
  assert.deepEqual(
    (await Promise.all([ended, ...first, ...waiting])).map(({ status }) => status),
    [200, 200, 200, 200, 500, 400],
  )
  await eventually('the queue is empty', () => queue.running() === 0)
})
