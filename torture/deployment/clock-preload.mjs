// Loaded into a Kontor process before anything else (also into its threads): its clock is off by what a file says, in
// milliseconds. PostgreSQL and the machine keep theirs, as where one node's clock is wrong.
import { readFileSync } from 'node:fs'

const file = process.env.TORTURE_CLOCK_FILE
const RealDate = Date
let offsetMs = 0

function readOffset() {
  try {
    offsetMs = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    offsetMs = 0
  }
}
readOffset()
setInterval(readOffset, 100).unref()

const now = () => RealDate.now() + offsetMs

globalThis.Date = new Proxy(RealDate, {
  construct(target, given, newTarget) {
    const own = newTarget === globalThis.Date ? target : newTarget
    return Reflect.construct(target, given.length === 0 ? [now()] : given, own)
  },
  apply: target => new target(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
})
