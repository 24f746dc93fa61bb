import { isIPv6 } from 'node:net'
import { groupsOf } from '../domain/tenants/addresses.ts'

/** The process holds as much pending data as it may. The client gets a 503 and retries. */
export class Overloaded extends Error {
  constructor(pendingBytes: number) {
    super(`${pendingBytes} bytes are waiting to become durable`)
  }
}

export type ByteLimit = {
  /** Throws `Overloaded` beyond the limit. A single item is always admitted, whatever its size. */
  acquire(bytes: number): void
  release(bytes: number): void
  pendingBytes(): number
}

/** Bounds the memory of what waits. */
export function openByteLimit(maxBytes: number, onRejected?: () => void): ByteLimit {
  let pending = 0
  return {
    acquire(bytes) {
      if (pending > 0 && pending + bytes > maxBytes) {
        onRejected?.()
        throw new Overloaded(pending)
      }
      pending += bytes
    },
    release(bytes) {
      pending -= bytes
    },
    pendingBytes: () => pending,
  }
}

/** Bounds long-running requests (exports, live streams) per tenant and in total. */
export type ConcurrencyLimit = {
  /** Returns the function that releases the slot, to be called once. Null: no slot is free. */
  acquire(tenantId: number): (() => void) | null
}

// The rest is for tenants that have none, so that a few tenants cannot take all slots.
const SHARED_FRACTION = 0.75

export function openConcurrencyLimit({ perTenant, total }: { perTenant: number; total: number }): ConcurrencyLimit {
  const counts = new Map<number, number>()
  let running = 0
  return {
    acquire(tenantId) {
      const count = counts.get(tenantId) ?? 0
      const available = count === 0 ? total : total * SHARED_FRACTION
      if (running >= available || count >= perTenant) return null
      counts.set(tenantId, count + 1)
      running++
      return () => {
        const left = counts.get(tenantId)! - 1
        if (left === 0) counts.delete(tenantId)
        else counts.set(tenantId, left)
        running--
      }
    },
  }
}

const FAILURE_WINDOW_MS = 1_000

/** Counts a failed credential; true: this address has failed more than `perSecond` times within a second. */
export type FailureLimit = (address: string) => boolean

export function openFailureLimit(perSecond: number): FailureLimit {
  const failures = new Map<string, number>()
  let windowEnds = 0
  return address => {
    const now = performance.now()
    if (now >= windowEnds) {
      failures.clear()
      windowEnds = now + FAILURE_WINDOW_MS
    }
    const network = networkOf(address)
    const count = (failures.get(network) ?? 0) + 1
    failures.set(network, count)
    return count > perSecond
  }
}

/** One customer usually controls a whole IPv6 /64. */
function networkOf(address: string): string {
  return isIPv6(address) ? groupsOf(address).slice(0, 4).join(':') : address
}
