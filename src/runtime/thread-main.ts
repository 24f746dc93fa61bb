// Entry point of the pipeline's thread (see startWorkerThread).
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

// A thread does not use the cache of its process: without this, it strips types and compiles for a second at each start.
enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url)))
await import('./thread.ts')
