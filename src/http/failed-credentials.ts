import { isIPv6 } from 'node:net'
import { groupsOf } from '../domain/tenants/addresses.ts'
import { type Problem, problems } from './problems.ts'

/** The answer to a request with this problem from this address. */
type LimitFailures = (problem: Problem, address: string) => Problem

const WINDOW_MS = 1_000
const RETRY_AFTER_S = 1

/**
 * Whoever tries credentials is answered 429 beyond so many failures a second. Only failures are counted and only they
 * are refused: good credentials from the same address, an office or a proxy, go on.
 */
export function limitFailures(perSecond: number | null): LimitFailures {
  const failures = new Map<string, number>()
  let windowEnds = 0
  return (problem, address) => {
    if (perSecond === null || problem.status !== 401 || problem.code === 'missing_credentials') return problem
    const now = performance.now()
    if (now >= windowEnds) {
      failures.clear()
      windowEnds = now + WINDOW_MS
    }
    const network = networkOf(address)
    const count = (failures.get(network) ?? 0) + 1
    failures.set(network, count)
    if (count <= perSecond) return problem
    return problems.tooManyRequests(RETRY_AFTER_S, 'Too many failed credentials from this address.')
  }
}

/** Of IPv6 the first half: one customer has the other. */
function networkOf(address: string): string {
  return isIPv6(address) ? groupsOf(address).slice(0, 4).join(':') : address
}
