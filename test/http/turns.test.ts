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
/** One under way, where two dozen would be if there were processors for them. */
const crowded = { capacity: () => 1, most: 24, waits: () => undefined }

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

test('a tenant alone may have a limit of its own, and who comes then still does not wait', () => {
  const turns = openTurns({ ...still, capacity: 2, aloneCapacity: 4 })
  const started: string[] = []
  const take = (name: string) => turns.take(name[0]!, 1, () => started.push(name))
  for (let i = 1; i <= 6; i++) take(`a${i}`)
  take('b1')
  assert.deepEqual(started, ['a1', 'a2', 'a3', 'a4', 'b1'])
  for (let i = 0; i < 3; i++) turns.give('a', 1)
  assert.deepEqual(started.slice(5), [], 'one of each is under way, and that is all there is for two')
  turns.give('b', 1)
  assert.deepEqual(started.slice(5), ['a5'])
})

test('strangers do not make a tenant share that is alone, and take turns beside two', () => {
  let at = 0
  const turns = openTurns({ capacity: 1, now: () => at })
  const started: string[] = []
  const take = (name: string) => turns.take(name[0]!, 1, () => started.push(name), name[0] !== '?')
  for (const name of ['?1', 'a1', '?2', 'a2', 'a3']) take(name)
  assert.deepEqual(started, ['?1', 'a1', '?2', 'a2', 'a3'])
  take('b1')
  for (const name of ['?3', 'a4', 'b2']) take(name)
  assert.deepEqual(started.slice(5), ['b1'])
  for (const name of ['?', '?', 'a', 'a', 'a', 'b']) turns.give(name, 1)
  assert.deepEqual(started.slice(6).toSorted(), ['?3', 'a4', 'b2'])
  for (const name of ['?', 'a', 'b']) turns.give(name, 1)
  at += 10_000
  for (const name of ['?4', 'a5', '?5', 'a6']) take(name)
  assert.deepEqual(started.slice(9), ['?4', 'a5', '?5', 'a6'], 'b is forgotten')
})

test('whoever has used little lately has more than one under way beside a flood, and waits only for its own flood', () => {
  let at = 0
  const turns = openTurns({ capacity: crowded, now: () => at })
  const started: string[] = []
  const take = (name: string) => turns.take(name[0]!, 1, () => started.push(name))
  take('q1')
  for (let i = 1; i <= 20; i++) {
    take(`f${i}`)
    turns.give('f', 1)
    at += 10
  }
  assert.equal(turns.waiting(), 0)
  take('f21')
  take('f22')
  take('q2')
  take('q3')
  turns.take('?', 1, () => started.push('?1'), false)
  turns.take('?', 1, () => started.push('?2'), false)
  assert.deepEqual(started.slice(21), ['f21', 'q2', 'q3', '?1'], 'strangers have one each')
  // It has used as much as the flood: whatever more there is of it waits like the flood.
  for (let i = 4; i <= 30; i++) take(`q${i}`)
  assert.equal(started.filter(name => name.startsWith('q')).length, 12, 'half of what there is at most')
  for (let i = 1; i <= 12; i++) turns.give('q', 1)
  assert.ok(turns.waiting() > 1)
})

test('many that end as soon as they begin are not one stack', () => {
  const turns = openTurns({ ...still, capacity: 1 })
  let ended = 0
  turns.take('a', 1, () => undefined)
  turns.take('b', 1, () => undefined)
  for (let i = 0; i < 5_000; i++)
    turns.take('a', 1, () => {
      ended++
      turns.give('a', 1)
    })
  assert.equal(ended, 0)
  turns.give('a', 1)
  assert.equal(ended, 5_000)
})

test('whatever comes, leaves and goes in which order: all others have their turn, in the order of their tenant', () => {
  const request = fc.record({
    tenant: fc.constantFrom('a', 'b', 'c'),
    weight: fc.integer({ min: 1, max: 8 }),
  })
  const step = fc.oneof(
    { weight: 3, arbitrary: request },
    { weight: 2, arbitrary: fc.constant('end' as const) },
    { weight: 1, arbitrary: fc.record({ leaves: fc.nat(199) }) },
  )
  const limits = fc.constantFrom<Omit<Parameters<typeof openTurns>[0], 'now'>>(
    { capacity: 8 },
    { capacity: 8, aloneCapacity: 12 },
    { capacity: crowded },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), limits, (steps, limit) => {
      const turns = openTurns({ ...still, ...limit })
      const underWay: { tenant: string; weight: number }[] = []
      const order: Record<string, number[]> = { a: [], b: [], c: [] }
      const leave: (() => void)[] = []
      const left = new Set<number>()
      let taken = 0
      const end = () => {
        const ended = underWay.shift()
        if (ended) turns.give(ended.tenant, ended.weight)
      }
      for (const each of steps) {
        if (each === 'end') end()
        else if ('leaves' in each) {
          const number = each.leaves
          leave[number]?.()
          if (number < taken && !Object.values(order).flat().includes(number)) left.add(number)
        } else {
          const number = taken++
          const isIdle = !underWay.some(({ tenant }) => tenant === each.tenant)
          leave[number] = turns.take(each.tenant, each.weight, () => {
            underWay.push(each)
            order[each.tenant]!.push(number)
          })
          if (isIdle)
            assert.ok(order[each.tenant]!.includes(number), 'whoever has nothing under way waits for nobody')
        }
      }
      while (underWay.length > 0) end()
      assert.equal(turns.underWay(), 0)
      const started = Object.values(order).flat()
      assert.equal(started.length, taken - left.size)
      assert.ok(!started.some(number => left.has(number)))
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
  app.post('/ends', async request => {
    request.endTurn?.()
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

  const ended = post('ends', '1')
  const first = [post('held', '1'), post('held', '2')]
  await eventually('both are under way, and who ended its turn is not', () => turns.underWay() === 2)
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
    (await Promise.all([ended, ...first, ...waiting])).map(({ status }) => status),
    [200, 200, 200, 200, 500, 400],
  )
  await eventually('all turns are given back', () => turns.underWay() === 0)
})
