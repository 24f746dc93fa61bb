import { call } from './request.js'
import { dataKey, forgetDataKey, session } from './session.js'

/** The admin API. */
export function admin(path, options = {}) {
  return call(`/admin/v1${path}`, { ...options, key: session.adminKey })
}

/** The data API of the chosen tenant. */
export async function data(path, options = {}) {
  try {
    return await call(`/v1${path}`, { ...options, key: await dataKey() })
  } catch (error) {
    // The key that this console made has expired or was revoked: an admin key makes another one.
    if (error.status !== 401 || !session.adminKey) throw error
    forgetDataKey()
    return call(`/v1${path}`, { ...options, key: await dataKey() })
  }
}
