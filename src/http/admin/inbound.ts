import type pg from 'pg'
import { deadLetterAdmin } from '../../admin/dead-letters.ts'
import { receiptAdmin } from '../../admin/receipts.ts'
import { sourceTestAdmin } from '../../admin/source-test.ts'
import type { Directory } from '../../store/directory.ts'
import { authenticateAdmin } from '../auth.ts'
import type { SurfacePlugin } from '../server.ts'
import { deadLetterRoutes } from './dead-letters.ts'
import { receiptRoutes } from './receipts.ts'
import { rejectionRoutes } from './rejections.ts'
import { sourceTestRoutes } from './source-test.ts'

/** The admin API's part about what came in: receipts, archive, refusals, dead letters, and trying a source. */
export function inboundAdminSurface(options: {
  pool: pg.Pool
  partitions: number
  directory: Directory
  now: () => Date
}): SurfacePlugin {
  const receipts = receiptAdmin(options)
  return {
    name: 'admin of what came in',
    register(app) {
      app.addHook('onRequest', authenticateAdmin(options))
      receiptRoutes(app, { receipts })
      rejectionRoutes(app, { receipts })
      deadLetterRoutes(app, { deadLetters: deadLetterAdmin(options) })
      sourceTestRoutes(app, { sourceTests: sourceTestAdmin(options) })
    },
  }
}
