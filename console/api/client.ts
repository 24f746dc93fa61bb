import type { Query } from '../router.ts'
import { adminKey, dataKey, forgetDataKey, isAdmin } from '../session.ts'
import { errorStatus, type RequestOptions, request, streamEvents } from './request.ts'

/** The admin API. */
export function requestAdmin<Body>(path: string, options: RequestOptions = {}): Promise<Body> {
  return request<Body>(adminKey(), `/admin/v1${path}`, options)
}

/** Requests the data API of the selected tenant. */
export async function requestData<Body>(path: string, options: RequestOptions = {}): Promise<Body> {
  try {
    return await request<Body>(await dataKey(), `/v1${path}`, options)
  } catch (error) {
    // The created key has expired or was revoked: create another one.
    if (errorStatus(error) !== 401 || !isAdmin.value) throw error
    forgetDataKey()
    return request<Body>(await dataKey(), `/v1${path}`, options)
  }
}

/** Streams live data of the data API. */
export async function* streamData<Data>(
  path: string,
  options: { query?: Query; signal: AbortSignal },
): AsyncGenerator<Data> {
  yield* streamEvents<Data>(await dataKey(), `/v1${path}`, options)
}
