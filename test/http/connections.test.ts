import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { App } from '../../src/http/app.ts'
import { eventually } from '../eventually.ts'
import { exchange, listen, openShell } from './shell.ts'

/** A route that responds after `release`. `reached` resolves when a request has arrived. */
function held() {
  const reached = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const register = (app: App) => {
    app.get('/held', async () => {
      reached.resolve()
      await release.promise
      return { done: true }
    })
    app.post('/post', { onRequest: async () => reached.resolve() }, async () => ({}))
  }
  return { register, reached: reached.promise, release: release.resolve }
}

async function refusesConnections(port: number): Promise<void> {
  await eventually('connections to be refused', async () => {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return !isOpen
  })
}

test('a client that sends its headers too slowly gets 408 and is disconnected', async t => {
  const { app } = await openShell(t, held().register, { timeouts: { headersMs: 100 } })
  const port = await listen(app)
  const answer = await exchange(port, 'GET /held HTTP/1.1\r\nhost: a\r\nx-slow: ')
  assert.match(answer, /^HTTP\/1\.1 408 /)
  assert.match(answer, /"code":"request_timeout"/)
  assert.match(answer, /^x-request-id: \S+/im)
})

test('a client that sends its body too slowly gets 408 and is disconnected', async t => {
  const { app } = await openShell(t, held().register, { timeouts: { requestMs: 200 } })
  const port = await listen(app)
  const answer = await exchange(
    port,
    'POST /post HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{',
  )
  assert.match(answer, /^HTTP\/1\.1 408 /)
  assert.equal((await app.inject({ method: 'POST', url: '/post', payload: {} })).statusCode, 200)
})

test('input that is not valid HTTP gets a problem as response', async t => {
  const { app } = await openShell(t, held().register)
  const port = await listen(app)
  const head = 'POST /post HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n'
  for (const [bytes, status] of [
    ['\x16\x03\x01 hello\r\n\r\n', 400],
    ['GET\r\n\r\n', 400],
    ['GET /held HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
    [`${head}Host: b\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`, 400],
    ['GET /unknown HTTP/1.1\r\nconnection: close\r\n\r\n', 404],
    [`${head}content-length: x\r\n\r\n`, 400],
    [`${head}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}`, 400],
    [`${head}transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`, 400],
    [`GET /held HTTP/1.1\r\nhost: a\r\nx-large: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ] as const) {
    const answer = await exchange(port, bytes)
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), JSON.stringify(bytes.slice(0, 80)))
    assert.match(answer, /content-type: application\/problem\+json/i)
    assert.match(answer, /^x-request-id: \S+/im)
    const [, body = ''] = answer.split('\r\n\r\n')
    assert.equal(JSON.parse(body).status, status)
  }
})

test('input that is not valid HTTP after valid requests is answered after them', async t => {
  const { register, release } = held()
  const later: ServerResponse[] = []
  const { app } = await openShell(t, app => {
    register(app)
    app.get('/later', async (_request, reply) => {
      later.push(reply.raw)
      return {}
    })
  })
  const requests = ['/held', '/later', '/later'].map(path => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`)
  const answers = exchange(await listen(app), `${requests.join('')}BROKEN\r\n\r\n`)
  await eventually('the later responses to wait for the first', async () => {
    return later.length === 2 && later.every(({ headersSent }) => headersSent)
  })
  release()
  assert.deepEqual((await answers).match(/(?<=HTTP\/1\.1 )\d+/g), ['200', '200', '200', '400'])
})

test('an expectation that Kontor does not know is ignored', async t => {
  const { app } = await openShell(t, held().register)
  const head = 'POST /post HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n'
  const answer = await exchange(await listen(app), `${head}expect: a-miracle\r\ncontent-length: 2\r\n\r\n{}`)
  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.match(answer, /^x-request-id: \S+/im)
})

test('a body shorter than its Content-Length is a 400 problem', async t => {
  const { app } = await openShell(t, held().register)
  const socket = connect(await listen(app), '127.0.0.1')
  let text = ''
  socket.setEncoding('utf8').on('data', part => {
    text += part
  })
  socket.end('POST /post HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{}')
  await once(socket, 'close')
  assert.match(text, /^HTTP\/1\.1 400 [\s\S]*application\/problem\+json/)
})

test('on close, requests in flight are completed, new connections are refused, and the connection ends', async t => {
  const { register, reached, release } = held()
  const { app } = await openShell(t, register)
  const port = await listen(app)
  const agent = new Agent({ keepAlive: true })
  const inFlight = httpRequest({ port, host: '127.0.0.1', path: '/held', agent }).end()
  await reached

  const closed = app.close()
  await refusesConnections(port)
  release()
  const [response] = (await once(inFlight, 'response')) as [IncomingMessage]
  assert.equal(response.statusCode, 200)
  assert.equal(response.headers.connection, 'close')
  response.resume()
  await closed
  agent.destroy()
})

test('a body that is arriving when the close starts is read completely and answered', async t => {
  const { register, reached } = held()
  const { app } = await openShell(t, register)
  const port = await listen(app)
  let text = ''
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('utf8').on('data', part => {
    text += part
  })
  socket.write('POST /post HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{')
  await reached
  const closed = app.close()
  await refusesConnections(port)
  socket.write('}')
  await once(socket, 'close')
  await closed
  assert.match(text, /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*\{\}$/i)
})

test('close does not wait for connections that sent nothing', { timeout: 120_000 }, async t => {
  const { app } = await openShell(t, held().register, { timeouts: { drainMs: 60_000 } })
  const silent = connect(await listen(app), '127.0.0.1')
  await once(silent, 'connect')
  const ended = once(silent, 'close')
  // once the server responds on a later connection, it has seen this one
  await exchange(silent.remotePort!, 'GET /nope HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
  await app.close()
  await ended
})

test('close waits at most for the drain timeout', { timeout: 120_000 }, async t => {
  const { register, reached } = held()
  const { app } = await openShell(t, register, { timeouts: { drainMs: 100 } })
  const stuck = connect(await listen(app), '127.0.0.1')
  stuck.write('GET /held HTTP/1.1\r\nhost: a\r\n\r\n')
  await reached
  const ended = once(stuck, 'close')
  await app.close()
  await ended
})
