import { Agent, request } from 'node:http'

export type Answer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Record<string, unknown>
}

const PATIENCE_MS = 15_000

export type Client = ReturnType<typeof openClient>

/** An HTTP client that treats every failure as a missing response. */
export function openClient() {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  return {
    /** Null if the connection broke or the request timed out. */
    send(options: {
      url: string
      method?: string
      headers?: Record<string, string>
      body?: object | string
      patienceMs?: number
    }): Promise<Answer | null> {
      const { url, method = 'POST', headers = {}, body, patienceMs = PATIENCE_MS } = options
      const text = typeof body === 'object' ? JSON.stringify(body) : body
      return new Promise(resolve => {
        const message = request(url, {
          agent,
          method,
          headers: {
            ...(text !== undefined && {
              'content-type': 'application/json',
              'content-length': String(Buffer.byteLength(text)),
            }),
            ...headers,
          },
        })
        const timer = setTimeout(() => message.destroy(), patienceMs)
        const end = (answer: Answer | null) => {
          clearTimeout(timer)
          resolve(answer)
        }
        message.on('error', () => end(null))
        message.on('close', () => end(null))
        message.on('response', response => {
          let received = ''
          response.setEncoding('utf8')
          response.on('data', part => {
            received += part
          })
          response.on('error', () => end(null))
          response.on('end', () =>
            end({ status: response.statusCode!, headers: response.headers, body: parseJson(received) }),
          )
        })
        message.end(text)
      })
    },
    close: () => agent.destroy(),
  }
}

function parseJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
