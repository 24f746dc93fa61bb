import type { App } from '../../src/http/app.ts'
import { documentedPath, openApiDocument } from '../../src/http/openapi.ts'

/** Visible routes that are missing in the document, operations without a route, and hidden routes. */
export async function compareWithOpenApi(app: App): Promise<{
  undocumented: string[]
  unanswered: string[]
  hidden: string[]
}> {
  const document = await openApiDocument(app, { publicUrl: null, version: '0.0.0' })
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map(method => `${method.toUpperCase()} ${path}`),
  )
  const declared = app.routeTable
    .filter(({ method }) => method !== 'HEAD' && method !== 'OPTIONS')
    .map(({ method, url, isHidden }) => ({ name: `${method} ${documentedPath(url)}`, isHidden }))
  const visible = declared.filter(route => !route.isHidden).map(route => route.name)
  return {
    undocumented: visible.filter(name => !documented.includes(name)),
    unanswered: documented.filter(name => !visible.includes(name)),
    hidden: declared.filter(route => route.isHidden).map(route => route.name),
  }
}
