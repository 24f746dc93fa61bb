import type { Transaction } from './unit.ts'

/**
 * What workers remember from one transaction to the next. It is made anew when the configuration has changed, so ask
 * in every transaction and write to what was handed out: what was learnt before a change ends with it.
 */
export function openMemory<T>(make: () => T): (transaction: Transaction) => T {
  let version = Number.NaN
  let memory: T
  return ({ configVersion }) => {
    if (configVersion !== version) {
      version = configVersion
      memory = make()
    }
    return memory
  }
}
