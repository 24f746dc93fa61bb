import type pg from 'pg'
import { ENTITY_TYPES } from '../../domain/records/records.ts'
import type { Accept } from '../../intake/accept.ts'
import type { App } from '../app.ts'
import { openOutcomes } from './change.ts'
import { readRoutes } from './read.ts'
import { batchRoute, writeRoutes } from './write.ts'

export function recordRoutes(
  app: App,
  { pool, accept, now }: { pool: pg.Pool; accept: Accept; now: () => Date },
): void {
  const awaitOutcomes = openOutcomes({ pool })
  for (const entityType of ENTITY_TYPES) {
    writeRoutes(app, entityType, { pool, accept, awaitOutcomes, now })
    readRoutes(app, entityType, { pool })
    batchRoute(app, entityType, { accept, awaitOutcomes, now })
  }
}
