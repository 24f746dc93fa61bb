// Loaded into the process of every test file. The process must exit when its tests are done. If something prevents that
// (an open server, pool or timer), it is printed and the file fails.
import { after } from 'node:test'
import { isMainThread } from 'node:worker_threads'

const GRACE_MS = 60_000 // enough for the closing hooks of the file, also on a busy machine

if (isMainThread) {
  after(() => {
    setTimeout(() => {
      const open = process.getActiveResourcesInfo().filter(name => name !== 'PipeWrap')
      console.error(`The tests are done, but something is still open: ${open.join(', ')}`)
      process.exit(1)
    }, GRACE_MS).unref()
  })
}
