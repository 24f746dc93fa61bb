import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import type { ValidationError } from '../../src/domain/validation-error.ts'
import type { App } from '../../src/http/app.ts'
import { problems } from '../../src/http/problems.ts'
import { readValidationErrors } from '../../src/http/validation.ts'
import { openShell, problemIn } from './shell.ts'

const Body = Type.Object({
  entityType: Type.Union([Type.Literal('product'), Type.Literal('contact'), Type.Literal('order')]),
  id: Type.String({ minLength: 1, maxLength: 5 }),
  sourceUpdatedAt: Type.String({ format: 'timestamp' }),
  size: Type.Optional(Type.Enum(['s', 'm'])),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  parent: Type.Optional(Type.Union([Type.Object({ 'a/b': Type.String() }), Type.Null()])),
  either: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
  tags: Type.Optional(Type.Array(Type.String(), { maxItems: 2 })),
  closed: Type.Optional(Type.Object({ x: Type.Optional(Type.Number()) }, { additionalProperties: false })),
})
const Query = Type.Object({
  limit: Type.Integer({ minimum: 1, default: 50 }),
  deep: Type.Optional(Type.Boolean()),
  since: Type.Optional(Type.String({ format: 'timestamp' })),
})

function routes(app: App): void {
  app.post('/v', { schema: { body: Body } }, async request => request.body)
  app.get('/q', { schema: { querystring: Query } }, async request => request.query)
  app.post('/more', { schema: { body: Body }, attachValidation: true }, async request => {
    const own = [{ pointer: '/data/sku', message: 'is taken' }]
    throw problems.invalid([...readValidationErrors(request.validationError), ...own])
  })
  app.post('/documented', { schema: { body: Body, querystring: Query }, config: { body: 'raw' } }, async request => ({
    query: request.query,
    text: request.rawText,
  }))
}

const good = { entityType: 'product', id: 'p-1', sourceUpdatedAt: '2026-01-31' }

async function errorsOf(app: App, body: unknown): Promise<ValidationError[]> {
  const answer = await app.inject({
    method: 'POST',
    url: '/v',
    payload: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
  assert.equal(answer.statusCode, 400)
  const problem = problemIn(answer)
  assert.equal(problem.code, 'invalid_request')
  return problem.errors ?? []
}

test('all validation errors of a body are in one response, in plain words', async t => {
  const { app } = await openShell(t, routes)
  assert.deepEqual(await errorsOf(app, {}), [
    { pointer: '/entityType', message: 'is required' },
    { pointer: '/id', message: 'is required' },
    { pointer: '/sourceUpdatedAt', message: 'is required' },
  ])
  assert.deepEqual(
    await errorsOf(app, {
      entityType: 'invoice',
      id: '',
      sourceUpdatedAt: 'yesterday',
      size: 'xl',
      count: 0,
      either: {},
      tags: ['a', 'b', 3],
      closed: { x: '1', y: 2 },
    }),
    [
      { pointer: '/entityType', message: 'must be one of product, contact, order' },
      { pointer: '/id', message: 'must not be empty' },
      {
        pointer: '/sourceUpdatedAt',
        message: 'must be a valid ISO 8601 date or time, for example 2026-01-31 or 2026-01-31T09:30:00Z',
      },
      { pointer: '/size', message: 'must be one of s, m' },
      { pointer: '/count', message: 'must be at least 1' },
      { pointer: '/either', message: 'must be a string or an integer' },
      { pointer: '/tags', message: 'must have at most 2 items' },
      { pointer: '/tags/2', message: 'must be a string' },
      { pointer: '/closed/y', message: 'is not a known field' },
      { pointer: '/closed/x', message: 'must be a number' },
    ],
  )
})

test('for a nullable value, the errors of the value are reported', async t => {
  const { app } = await openShell(t, routes)
  assert.deepEqual(await errorsOf(app, { ...good, parent: {} }), [{ pointer: '/parent/a~1b', message: 'is required' }])
  assert.deepEqual(await errorsOf(app, { ...good, parent: 7 }), [{ pointer: '/parent', message: 'must be an object' }])
})

test('bodies are not converted', async t => {
  const { app } = await openShell(t, routes)
  assert.deepEqual(await errorsOf(app, { ...good, id: 7 }), [{ pointer: '/id', message: 'must be a string' }])
  assert.deepEqual(await errorsOf(app, { ...good, count: '7' }), [{ pointer: '/count', message: 'must be an integer' }])
  for (const body of [[], 'text', 7, null, true])
    assert.deepEqual(await errorsOf(app, body), [{ pointer: '', message: 'must be an object' }])
})

test('a valid body is passed on unchanged, including unknown fields', async t => {
  const { app } = await openShell(t, routes)
  const body = { ...good, id: '💶💶💶💶💶', parent: null, extra: { deep: [1] } }
  const answer = await app.inject({ method: 'POST', url: '/v', payload: body })
  assert.deepEqual(answer.json(), body)
})

test('query parameters are converted, get their defaults and are validated; unknown ones are ignored', async t => {
  const { app } = await openShell(t, routes)
  assert.deepEqual((await app.inject('/q?limit=7&deep=true&what=ever')).json(), {
    limit: 7,
    deep: true,
    what: 'ever',
  })
  assert.deepEqual((await app.inject('/q')).json(), { limit: 50 })
  for (const [query, message] of [
    ['limit=0', 'must be at least 1'],
    ['limit=1.5', 'must be an integer'],
    ['limit=', 'must be an integer'],
    ['limit=ten', 'must be an integer'],
    ['limit=1e1', 'must be an integer'],
    ['limit=0x1', 'must be an integer'],
    ['limit=%201', 'must be an integer'],
    ['limit=1&limit=2', 'must be an integer'],
  ]) {
    const answer = await app.inject(`/q?${query}`)
    assert.equal(answer.statusCode, 400)
    assert.deepEqual(problemIn(answer).errors, [{ pointer: '/limit', message }])
  }
  const both = problemIn(await app.inject('/q?limit=a&since=b'))
  assert.deepEqual(
    both.errors?.map(({ pointer }) => pointer),
    ['/limit', '/since'],
  )
})

test('a handler can add its own errors to the list', async t => {
  const { app } = await openShell(t, routes)
  const answer = await app.inject({ method: 'POST', url: '/more', payload: { ...good, id: undefined } })
  assert.deepEqual(problemIn(answer).errors, [
    { pointer: '/id', message: 'is required' },
    { pointer: '/data/sku', message: 'is taken' },
  ])
})

test('the schema of a raw body is not validated, that of its query is', async t => {
  const { app } = await openShell(t, routes)
  const free = await app.inject({ method: 'POST', url: '/documented?limit=3', payload: 'anything' })
  assert.deepEqual(free.json(), { query: { limit: 3 }, text: 'anything' })
  assert.equal((await app.inject({ method: 'POST', url: '/documented?limit=x', payload: '' })).statusCode, 400)
})

test('at most 1,000 validation errors are listed', async t => {
  const { app } = await openShell(t, app => {
    app.post('/many', { schema: { body: Type.Array(Type.String()) } }, async () => ({}))
  })
  const answer = await app.inject({ method: 'POST', url: '/many', payload: new Array(50_000).fill(0) })
  assert.equal(problemIn(answer).errors?.length, 1_000)
})
