import type pg from 'pg'
import type { Accept } from '../../intake/accept.ts'
import type { Log } from '../../log/log.ts'
import type { Directory } from '../../store/directory.ts'
import { authenticatePrivate } from '../auth.ts'
import type { SurfacePlugin } from '../server.ts'
import { eventListRoutes } from './events.ts'
import { lookupRoutes } from './lookup.ts'
import { operationRoutes } from './operations.ts'
import { recordRoutes } from './records.ts'
import { subscriptionRoutes } from './subscriptions.ts'
import { openWaiting } from './waiting.ts'

export type DataSurfaceOptions = {
  pool: pg.Pool
  log: Log
  accept: Accept
  directory: Directory
  now: () => Date
}

/** The data API. */
export function dataSurface(options: DataSurfaceOptions): SurfacePlugin {
  return {
    name: 'data',
    register(app) {
      app.addHook('onRequest', authenticatePrivate(options))
      recordRoutes(app, { ...options, waiting: openWaiting(options) })
      operationRoutes(app, options)
      eventListRoutes(app, options)
      lookupRoutes(app, options)
      subscriptionRoutes(app, options)
    },
  }
}
