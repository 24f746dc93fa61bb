// Loaded into every test file's process: a file whose tests are done must end by itself. What keeps it from ending
// (a server, a pool, a timer that was not closed) is named, and the file fails.
import { after } from 'node:test'
import { isMainThread } from 'node:worker_threads'

const GRACE_MS = 60_000 // the file's own closing hooks run in this time, on the busiest machine too

if (isMainThread) {
  after(() => {
    setTimeout(() => {
      const open = process.getActiveResourcesInfo().filter(name => name !== 'PipeWrap')
      console.error(`The tests are done, but something is still open: ${open.join(', ')}`)
      process.exit(1)
    }, GRACE_MS).unref()
  })
}
