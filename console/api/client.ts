import type { Query } from '../query.ts'
import { adminKey, dataKey, forgetDataKey, isAdmin } from '../session.ts'
import { type RequestOptions, request, statusOf, streamed } from './request.ts'

/** The admin API. */
export function fromAdmin<Body>(path: string, options: RequestOptions = {}): Promise<Body> {
  return request<Body>(adminKey(), `/admin/v1${path}`, options)
}

/** The data API of the chosen tenant. */
export async function fromData<Body>(path: string, options: RequestOptions = {}): Promise<Body> {
  try {
    return await request<Body>(await dataKey(), `/v1${path}`, options)
  } catch (error) {
    // The key that this console made has expired or was revoked: an admin key makes another one.
    if (statusOf(error) !== 401 || !isAdmin.value) throw error
    forgetDataKey()
    return request<Body>(await dataKey(), `/v1${path}`, options)
  }
}

/** What the data API goes on telling. */
export async function* followData<Data>(
  path: string,
  options: { query?: Query; signal: AbortSignal },
): AsyncGenerator<Data> {
  yield* streamed<Data>(await dataKey(), `/v1${path}`, options)
}
