import type { Admin } from '../../admin/admin.ts'
import type { Directory } from '../../store/tenants/directory.ts'
import type { Surface } from '../app.ts'
import { authenticateAdmin } from '../auth.ts'
import { deadLetterRoutes } from './dead-letters.ts'
import { erasureRoutes } from './erasure.ts'
import { keyRoutes } from './keys.ts'
import { receiptRoutes } from './receipts.ts'
import { rejectionRoutes } from './rejections.ts'
import { sourceTestRoutes } from './source-test.ts'
import { sourceRoutes } from './sources.ts'
import { tenantRoutes } from './tenants.ts'

export type AdminSurfaceOptions = { admin: Admin; directory: Directory; now: () => Date }

/** The admin API: what the console and operators use, behind an admin key. One file a subject. */
export function adminSurface(options: AdminSurfaceOptions): Surface {
  return {
    name: 'admin',
    register(app) {
      app.addHook('onRequest', authenticateAdmin(options))
      tenantRoutes(app, options.admin)
      keyRoutes(app, options.admin)
      sourceRoutes(app, options.admin)
      sourceTestRoutes(app, options.admin)
      receiptRoutes(app, options.admin)
      rejectionRoutes(app, options.admin)
      deadLetterRoutes(app, options.admin)
      erasureRoutes(app, options.admin)
    },
  }
}
