import { registerHooks } from 'node:module'

// For programs that import the SDK by its package name. Resolves it to the source, because it is not built here.
registerHooks({
  resolve(specifier, context, nextResolve) {
    const name = /^@kontor\/sdk(?:\/(webhooks))?$/.exec(specifier)
    if (!name) return nextResolve(specifier, context)
    const url = new URL(`../../sdk/js/src/${name[1] ?? 'index'}.ts`, import.meta.url)
    return nextResolve(url.href, context)
  },
})
