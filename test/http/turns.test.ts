import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import test from 'node:test'
import fc from 'fast-check'
import fastify from 'fastify'
import type { App } from '../../src/http/app.ts'
import { openTurns, takeTurns } from '../../src/http/turns.ts'
import { eventually } from '../eventually.ts'

const still = { now: () => 0 }

test('a tenant that floods waits for itself; its neighbour goes first, and a tenant alone never waits', () => {
  const turns = openTurns({ ...still, capacity: 4 })
  const started: string[] = []
  const take = (name: string) => turns.take(name[0]!, 1, () => started.push(name))
  for (let i = 1; i <= 6; i++) take(`a${i}`)
  assert.deepEqual(started, ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'], 'nobody else is there')
  take('b1')
  assert.equal(started.at(-1), 'b1')
  for (let i = 7; i <= 9; i++) take(`a${i}`)
  take('b2')
  take('b3')
  assert.deepEqual(started.slice(7), ['b2'], 'two of four are its part')
  // six of a, two of b are under way: b has less, and goes first
  turns.give('b', 1)
  assert.equal(started.at(-1), 'b3')
  for (let i = 0; i < 5; i++) turns.give('a', 1)
  assert.deepEqual(started.slice(9), ['a7'])
  for (let i = 0; i < 2; i++) turns.give('b', 1)
  assert.deepEqual(started.slice(10), ['a8', 'a9'])
})

test('whatever comes and goes in which order: all have their turn, in the order of their tenant', () => {
  const request = fc.record({
    tenant: fc.constantFrom('a', 'b', 'c'),
    weight: fc.integer({ min: 1, max: 8 }),
  })
  const step = fc.oneof(request, fc.constant('end' as const))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      const turns = openTurns({ ...still, capacity: 8 })
      const underWay: { tenant: string; weight: number }[] = []
      const order: Record<string, number[]> = { a: [], b: [], c: [] }
      let taken = 0
      const end = () => {
        const ended = underWay.shift()
        if (ended) turns.give(ended.tenant, ended.weight)
      }
      for (const each of steps) {
        if (each === 'end') end()
        else {
          const number = taken++
          const isIdle = !underWay.some(({ tenant }) => tenant === each.tenant)
          turns.take(each.tenant, each.weight, () => {
            underWay.push(each)
            order[each.tenant]!.push(number)
          })
          if (isIdle)
            assert.ok(order[each.tenant]!.includes(number), 'whoever has nothing under way waits for nobody')
        }
      }
      while (underWay.length > 0) end()
      assert.equal(turns.underWay(), 0)
      assert.equal(Object.values(order).flat().length, taken)
      for (const numbers of Object.values(order))
        assert.deepEqual(
          numbers,
          numbers.toSorted((a, b) => a - b),
        )
    }),
  )
})

test('a turn is given back by whoever is answered, refused, fails or hangs up', async t => {
  const turns = openTurns({ ...still, capacity: 1 })
  const app = fastify() as unknown as App
  app.decorateRequest('caller', null as never)
  app.decorateRequest('heldBytes', 0)
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    request.caller = { tenantId: Number(request.headers['x-tenant']) } as never
    request.heldBytes = Number(request.headers['content-length'])
    done()
  })
  takeTurns(app, turns)
  const held = Promise.withResolvers<void>()
  app.post('/answered', async () => ({}))
  app.post('/fails', async () => {
    throw new Error('no')
  })
  app.post('/held', async () => {
    await held.promise
    return {}
  })
  app.post('/refused', { schema: { body: { type: 'object', required: ['a'] } } }, async () => ({}))
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as { port: number }
  const post = (path: string, tenant: string) =>
    fetch(`http://127.0.0.1:${port}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tenant': tenant },
      body: '{}',
    })

  const first = [post('held', '1'), post('held', '2')]
  await eventually('both are under way', () => turns.underWay() === 2)
  // These wait behind their own; one of them hangs up.
  const waiting = ['answered', 'fails', 'refused'].map(path => post(path, '1'))
  const socket = connect(port, '127.0.0.1')
  socket.write(
    'POST /answered HTTP/1.1\r\nhost: x\r\nx-tenant: 2\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
  )
  await eventually('four wait', () => app.server.listening)
  socket.destroy()
  await once(socket, 'close')
  held.resolve()
  assert.deepEqual(
    (await Promise.all([...first, ...waiting])).map(({ status }) => status),
    [200, 200, 200, 500, 400],
  )
  await eventually('all turns are given back', () => turns.underWay() === 0)
})
