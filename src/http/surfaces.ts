import type pg from 'pg'
import type { AdminFor } from '../admin/admin.ts'
import type { Accept } from '../intake/accept.ts'
import type { Rejections } from '../intake/rejections.ts'
import type { Log } from '../log/log.ts'
import type { Budgets } from '../overload/budgets.ts'
import type { FairQueue } from '../overload/fair-queue.ts'
import type { ConcurrencyLimit } from '../overload/limits.ts'
import type { Directory } from '../store/tenants/directory.ts'
import { alertRoutes } from './admin/alerts.ts'
import { auditRoute } from './admin/audit.ts'
import { deadLetterRoutes } from './admin/dead-letters.ts'
import { destinationRoutes } from './admin/destinations.ts'
import { erasureRoutes, suppressionRoutes } from './admin/erasure.ts'
import { healthRoutes } from './admin/health.ts'
import { keyRoutes } from './admin/keys.ts'
import { peopleRoutes } from './admin/people.ts'
import { purgeRoutes } from './admin/purges.ts'
import { receiptRoutes } from './admin/receipts.ts'
import { createRequestAdmin } from './admin/routes.ts'
import { sourceRoutes, sourceTestRoute } from './admin/sources.ts'
import { tenantRoutes } from './admin/tenants.ts'
import { userRoutes } from './admin/users.ts'
import type { App, Surface } from './app.ts'
import { authenticateAdmin, authenticatePrivate, authenticateTracking, trackingCaller } from './auth.ts'
import { consoleRoutes } from './console/routes.ts'
import type { FindSession } from './console/session-cookie.ts'
import type { SessionOptions } from './console/session-routes.ts'
import type { SignIn } from './console/sign-in-routes.ts'
import { conversionListRoute, conversionRoute, conversionSeriesRoute } from './conversions/read.ts'
import { openCors } from './cors.ts'
import { customerRoute } from './customers/list.ts'
import { channelRoute, funnelRoute } from './customers/reports.ts'
import { cdpRoutes, settingsRoute } from './events/cdp.ts'
import { deadLetterListRoute } from './events/dead-letters.ts'
import { liveRoute } from './events/live.ts'
import { eventListRoute, eventSeriesRoute, lookupRoutes, visitorRoute } from './events/read.ts'
import { scriptRoute } from './events/script.ts'
import { trackRoute, welcomeRoute } from './events/track.ts'
import { adminExportRoutes, exportRoutes } from './export/routes.ts'
import { type InboundOptions, inboundRoute } from './inbound/receive.ts'
import { requestListRoute } from './inbound/requests.ts'
import { mcpRoute } from './mcp/route.ts'
import {
  type BacklogState,
  type DiskState,
  queueReads,
  queueWrites,
  rejectOnFullBacklog,
  rejectOnFullDisk,
} from './overload.ts'
import { listsAsCsv } from './paging.ts'
import { operationRoute } from './records/operations.ts'
import { contactNamesRoute } from './records/read.ts'
import { recordRoutes } from './records/write.ts'
import { recordRejections } from './rejections.ts'
import { booksRoute } from './reports/books.ts'
import { cashRoutes } from './reports/cash.ts'
import { consolidatedRoute } from './reports/consolidated.ts'
import { forecastRoutes } from './reports/forecast.ts'
import { outcomeRoutes } from './reports/outcomes.ts'
import { revenueRoutes } from './reports/revenue.ts'
import { subscriptionRoutes } from './reports/routes.ts'
import { seriesRoutes } from './reports/series.ts'
import { searchRoute } from './search.ts'
import { tenantRoute } from './tenant.ts'
import { waitForEarlierWrites } from './wait.ts'

/** Every surface with its credentials and routes. Routes that all servers have (/openapi.json, /docs) are in openapi.ts. */

type Credentials = { directory: Directory; now: () => Date }
/** Options of the surfaces that accept writes with keys. */
type Receiving = Credentials & { accept: Accept; backlog: BacklogState; writeQueue: FairQueue; rejections: Rejections }

/** `exportLimit`: the surfaces of a server share it. */
type Exporting = { pool: pg.Pool; exportLimit: ConcurrencyLimit }

export function dataSurface(
  options: Receiving & Exporting & { log: Log; readQueue: FairQueue; sessionOf?: FindSession | null },
): Surface {
  return {
    name: 'data',
    register(app) {
      app.addHook('onRequest', rejectOnFullBacklog(options.backlog))
      app.addHook('onRequest', authenticatePrivate(options))
      waitForEarlierWrites(app, options)
      queueWrites(app, options.writeQueue)
      queueReads(app, options.readQueue)
      recordRejections(app, options)
      recordRoutes(app, options) //         POST, DELETE, GET /v1/{products,contacts,orders}; GET …/:id; POST …/batch
      operationRoute(app, options) //       GET /v1/operations/:operationId
      contactNamesRoute(app, options) //    GET /v1/contact-names
      searchRoute(app, options) //          GET /v1/search
      tenantRoute(app, options) //          GET /v1/tenant
      eventListRoute(app, options) //       GET /v1/events
      conversionListRoute(app, options) //  GET /v1/conversions
      conversionRoute(app, options) //      GET /v1/conversions/:id
      liveRoute(app, options) //            GET /v1/events/live
      eventSeriesRoute(app, options) //     GET /v1/events/series
      visitorRoute(app, options) //         GET /v1/events/visitors
      conversionSeriesRoute(app, options) // GET /v1/conversions/series
      lookupRoutes(app, options) //         GET /v1/events/:id, /v1/events/lookup
      deadLetterListRoute(app, options) //  GET /v1/dead-letters
      requestListRoute(app, options) //     GET /v1/sources/:sourceConfigId/requests
      subscriptionRoutes(app, options) //   GET /v1/subscriptions/{overview,attention,acquisition,account,movements,retention}
      seriesRoutes(app, options) //         GET /v1/subscriptions/{history,breakdown}
      cashRoutes(app, options) //           GET /v1/subscriptions/{cash,cash/facts}
      revenueRoutes(app, options) //        GET /v1/subscriptions/{revenue,revenue/invoices}
      forecastRoutes(app, options) //       GET /v1/subscriptions/{forecast,churn-reasons}
      outcomeRoutes(app, options) //        GET /v1/subscriptions/{exclusions,trials,dunning}
      booksRoute(app, options) //           GET /v1/subscriptions/books
      consolidatedRoute(app, options) //    GET /v1/subscriptions/consolidated
      customerRoute(app, options) //        GET /v1/customers
      channelRoute(app, options) //         GET /v1/channels
      funnelRoute(app, options) //          GET /v1/funnel
      exportRoutes(app, options) //         GET /v1/export/{products,contacts,orders,events,conversions,subscriptions,movements,customers}
    },
  }
}

/** Tools for agents. Separate from the data API, because each tool call sends requests to the data API. */
export function toolSurface(options: Credentials & { version: string }): Surface {
  return {
    name: 'tools',
    register(app) {
      app.addHook('onRequest', authenticatePrivate(options))
      mcpRoute(app, options) //             POST /mcp
    },
  }
}

export function eventSurface(options: Receiving & { budgets: Budgets; disk: DiskState }): Surface {
  return {
    name: 'events',
    async register(app) {
      openCors(app)
      welcomeRoute(app) //                  GET /
      scriptRoute(app) //                   GET /k.js
      settingsRoute(app) //                 GET /v1/projects/:writeKey/settings
      await app.register(async scope => {
        const keyed = scope as unknown as App
        const receiving = { ...options, trackingCaller: trackingCaller(options) }
        keyed.addHook('onRequest', rejectOnFullDisk(options.disk))
        keyed.addHook('onRequest', rejectOnFullBacklog(options.backlog))
        keyed.addHook('onRequest', authenticateTracking({ ...options, optional: true }))
        queueWrites(keyed, options.writeQueue)
        recordRejections(keyed, options)
        trackRoute(keyed, receiving) //     POST /v1/track
        cdpRoutes(keyed, receiving) //      POST /v1/{identify,page,batch,…}, /beacon/v1/batch, /api/s/:type, …
      })
    },
  }
}

export function inboundSurface(
  options: InboundOptions & { disk: DiskState; backlog: BacklogState; writeQueue: FairQueue },
): Surface {
  return {
    name: 'inbound',
    register(app) {
      app.addHook('onRequest', rejectOnFullDisk(options.disk))
      app.addHook('onRequest', rejectOnFullBacklog(options.backlog))
      queueWrites(app, options.writeQueue)
      inboundRoute(app, options) //         POST /ingest/inbound/:sourceConfigId
    },
  }
}

export function adminSurface({
  adminFor,
  ...options
}: Credentials &
  Exporting & {
    adminFor: AdminFor
    now(): Date
    consoleUrl: string | null
    disk: { free(): number | null; daysLeft(): number | null }
    sessionOf?: FindSession | null
  }): Surface {
  const parts = { admin: createRequestAdmin(adminFor) }
  return {
    name: 'admin',
    register(app) {
      app.addHook('onRequest', authenticateAdmin(options))
      app.addHook('onSend', listsAsCsv)
      tenantRoutes(app, parts) //           GET, POST /admin/v1/tenants; GET, PATCH …/:id
      adminExportRoutes(app, { ...parts, ...options }) // GET /admin/v1/tenants/:id/export/{products,contacts,orders,events,…}
      healthRoutes(app, { ...parts, disk: options.disk }) // GET /admin/v1/tenants/:id/{health,issues}; GET /admin/v1/{sources,destinations}/:id/activity
      userRoutes(app, parts) //             GET, POST /admin/v1/users; POST …/:id/{disable,enable,reset}; GET /admin/v1/sessions; POST …/:id/end
      keyRoutes(app, parts) //              GET, POST /admin/v1/keys; POST …/:id/{rotate,revoke}
      sourceRoutes(app, parts) //           GET, POST /admin/v1/sources; GET, PATCH, DELETE …/:id; POST …/:id/{rotate,enable,disable}
      sourceTestRoute(app, parts) //        POST /admin/v1/sources/:id/test
      destinationRoutes(app, parts) //      GET, POST /admin/v1/destinations; GET, PATCH, DELETE …/:id; POST …/:id/{rotate,enable,disable,test,replay}; GET …/:id/deliveries
      receiptRoutes(app, parts) //          GET /admin/v1/{receipts,overflow,rejections}, /admin/v1/archive/:id, /admin/v1/events/:id/request
      deadLetterRoutes(app, parts) //       GET /admin/v1/dead-letters; GET …/:id; POST …/{replay,resolve}
      peopleRoutes(app, parts) //           GET /admin/v1/people/:id; GET …/export; POST …/{merge,split,verify}
      erasureRoutes(app, parts) //          GET, POST /admin/v1/erasures; GET …/:id
      suppressionRoutes(app, parts) //      GET /admin/v1/suppressions; DELETE …/:id
      purgeRoutes(app, parts) //            POST /admin/v1/purges; GET …/:id
      alertRoutes(app, { ...parts, ...options }) // GET /admin/v1/alerts; GET, PATCH /admin/v1/tenants/:id/{alert-rules,digest}; GET …/{alert-values,digest/preview}; POST …/alert-test
      auditRoute(app, parts) //             GET /admin/v1/audit
    },
  }
}

/** `signIn`: the provider at which people can sign in, besides local accounts and admin keys. */
export function consoleSurface(options: SessionOptions & { signIn: SignIn | null }): Surface {
  return {
    name: 'console',
    register(app) {
      // GET /console, /console/:version/*, /console/session; POST /console/{session,sign-out,invitation,invitation/accept};
      // with `signIn` GET /console/oidc/{start,callback}
      consoleRoutes(app, options)
    },
  }
}
