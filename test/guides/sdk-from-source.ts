import { registerHooks } from 'node:module'

// For programs that import the SDK by its package name. Resolves it to the source, because it is not built here. Bundlers also find files
// without an extension.
registerHooks({
  resolve(specifier, context, nextResolve) {
    const name = /^@kontor\/sdk(?:\/(webhooks|file|indexeddb))?$/.exec(specifier)
    const withoutExtension = /^\.{1,2}\/(?:[\w-]+\/|\.\.\/)*[\w-]+$/
    if (!name) return nextResolve(withoutExtension.test(specifier) ? `${specifier}.ts` : specifier, context)
    const url = new URL(`../../sdk/js/src/${name[1] ?? 'index'}.ts`, import.meta.url)
    return nextResolve(url.href, context)
  },
})
