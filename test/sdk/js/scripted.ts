import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'

type Scripted = {
  status?: number
  headers?: Record<string, string>
  body?: string
  /** Delay before the response. */
  after?: Promise<unknown>
}

/** A server that returns these responses in order, and then `{}`. It records the requests. */
export async function scriptedService(t: TestContext, ...answers: (Scripted | 'hang up')[]) {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into requests freely
  type Asked = { method: string; path: string; headers: Record<string, unknown>; body: any }
  const asked: Asked[] = []
  const service = { url: '', asked, answers }
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const { method = '', url = '', headers } = request
    asked.push({ method, path: url, headers, body: body && JSON.parse(body) })
    const answer = answers.shift() ?? {}
    if (answer === 'hang up') return request.socket.destroy()
    await answer.after
    response.writeHead(answer.status ?? 200, answer.headers).end(answer.body ?? '{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  service.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(() => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  })
  return service
}

/** From now on, delays of the SDK are recorded and end immediately. Other timers, such as those of fetch, are unaffected. */
export function notePauses(t: TestContext): number[] {
  const pauses: number[] = []
  const real = globalThis.setTimeout
  t.after(() => {
    globalThis.setTimeout = real
  })
  const noted = (run: (...values: unknown[]) => void, ms: number, ...more: unknown[]) => {
    if (!new Error().stack!.includes('/sdk/js/src/')) return real(run, ms, ...more)
    pauses.push(ms)
    return real(run, 0)
  }
  globalThis.setTimeout = noted as typeof setTimeout
  return pauses
}
