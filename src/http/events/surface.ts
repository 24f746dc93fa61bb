import { Type } from 'typebox'
import type { Accept } from '../../intake/accept.ts'
import type { Directory } from '../../store/tenants/directory.ts'
import type { Surface } from '../app.ts'
import { authenticateTracking, trackingCaller } from '../auth.ts'
import { openCors } from '../cors.ts'
import { cdpRoutes, settingsRoute } from './cdp.ts'
import { scriptRoute } from './script.ts'
import { type EventRouteOptions, trackRoutes } from './track.ts'

/** The event ingestion API. */
export function eventSurface(deps: { accept: Accept; directory: Directory; now: () => Date }): Surface {
  return {
    name: 'events',
    async register(app) {
      openCors(app)
      app.get(
        '/',
        {
          schema: {
            tags: ['Events'],
            summary: 'Welcome',
            response: { 200: Type.Object({ message: Type.String(), docs: Type.String() }) },
          },
        },
        async () => ({ message: 'Welcome to Kontor. Send events to POST /v1/track/.', docs: '/docs' }),
      )
      scriptRoute(app)
      settingsRoute(app)
      const options: EventRouteOptions = { ...deps, trackingCaller: trackingCaller(deps) }
      await app.register(async keyed => {
        keyed.addHook('onRequest', authenticateTracking({ ...deps, optional: true }))
        trackRoutes(keyed as typeof app, options)
        cdpRoutes(keyed as typeof app, options)
      })
    },
  }
}
