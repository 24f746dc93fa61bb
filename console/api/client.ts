import type { Query } from '../router.ts'
import { dataKey } from '../session.ts'
import { type RequestOptions, request, streamEvents, WITH_COOKIE } from './request.ts'

/** The admin API. */
export function requestAdmin<Body>(path: string, options: RequestOptions = {}): Promise<Body> {
  return request<Body>(WITH_COOKIE, `/admin/v1${path}`, options)
}

/** Requests the data API of the selected tenant. */
export function requestData<Body>(path: string, options: RequestOptions = {}): Promise<Body> {
  return request<Body>(dataKey(), `/v1${path}`, options)
}

/** Streams live data of the data API. */
export function streamData<Data>(path: string, options: { query?: Query; signal: AbortSignal }): AsyncGenerator<Data> {
  return streamEvents<Data>(dataKey(), `/v1${path}`, options)
}
