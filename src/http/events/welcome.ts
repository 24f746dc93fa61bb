import { Type } from 'typebox'
import type { App } from '../app.ts'

export function welcomeRoute(app: App): void {
  app.get(
    '/',
    {
      schema: {
        tags: ['Events'],
        summary: 'Welcome',
        description: 'Returns the URLs of the event API and the documentation. Requires no key.',
        response: { 200: Type.Object({ message: Type.String(), docs: Type.String() }) },
      },
    },
    async () => ({ message: 'Welcome to Kontor. Send events to POST /v1/track/.', docs: '/docs' }),
  )
}
