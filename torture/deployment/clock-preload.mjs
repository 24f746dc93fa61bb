// Preloaded into a Kontor process and its threads. Shifts the clock by the milliseconds in a file. PostgreSQL and the machine keep
// their clocks.
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
