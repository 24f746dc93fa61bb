import type pg from 'pg'
import type { Accept } from '../intake/accept.ts'
import type { Log } from '../log/log.ts'
import type { Directory } from '../store/tenants/directory.ts'
import type { Surface } from './app.ts'
import { authenticatePrivate } from './auth.ts'
import { conversionListRoute } from './conversions/list.ts'
import { eventListRoute } from './events/list.ts'
import { lookupRoutes } from './events/lookup.ts'
import { operationRoutes } from './records/operations.ts'
import { recordRoutes } from './records/records.ts'
import { openWaiting } from './records/waiting.ts'
import { subscriptionRoutes } from './reports/routes.ts'

export type DataSurfaceOptions = {
  pool: pg.Pool
  log: Log
  accept: Accept
  directory: Directory
  now: () => Date
}

/** The data API. */
export function dataSurface(options: DataSurfaceOptions): Surface {
  return {
    name: 'data',
    register(app) {
      app.addHook('onRequest', authenticatePrivate(options))
      recordRoutes(app, { ...options, waiting: openWaiting(options) })
      operationRoutes(app, options)
      eventListRoute(app, options)
      conversionListRoute(app, options)
      lookupRoutes(app, options)
      subscriptionRoutes(app, options)
    },
  }
}
