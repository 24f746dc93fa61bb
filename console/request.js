/** An answer that is not what was asked for, in the words of the server. */
export class Problem extends Error {
  constructor({ status, title, detail, code, request_id, errors }) {
    super(detail ?? title)
    Object.assign(this, { status, title, detail, code, requestId: request_id, errors: errors ?? [] })
  }
}

const PATIENCE_MS = 30_000

/** One request to this server. `query` leaves out what is empty; `body` goes as JSON. */
export async function call(path, { key, method = 'GET', query = {}, body, signal, keepalive } = {}) {
  const given = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  )
  const search = given.length > 0 ? `?${new URLSearchParams(given)}` : ''
  const headers = { authorization: `Bearer ${key}` }
  if (body !== undefined) headers['content-type'] = 'application/json'
  const signals = [AbortSignal.timeout(PATIENCE_MS), ...(signal ? [signal] : [])]
  let response
  let text
  try {
    response = await fetch(path + search, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any(signals),
      cache: 'no-store',
      credentials: 'omit',
      keepalive,
    })
    text = await response.text()
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Problem({
      status: 0,
      title: 'No answer',
      code: 'no_answer',
      detail: 'The server cannot be reached, or takes too long. Is it running?',
    })
  }
  const value = read(text, response.headers.get('content-type') ?? '')
  if (response.ok) return value
  throw new Problem({
    title: response.statusText || 'Error',
    detail: `The server answered ${response.status}.`,
    request_id: response.headers.get('x-request-id'),
    ...value,
    status: response.status,
  })
}

function read(text, type) {
  if (!/json/.test(type)) return null
  try {
    return JSON.parse(text, exactly)
  } catch {
    return null
  }
}

/** Numbers with more digits than a double holds stay as they were written, where the browser can do that. */
function exactly(_name, value, context) {
  if (typeof value !== 'number' || !context?.source || !JSON.rawJSON) return value
  const digits = context.source.replace(/e.*$/i, '').replace(/\D/g, '')
  return digits.length > 15 ? JSON.rawJSON(context.source) : value
}
