import type { Deployment } from '../deployment/deployment.ts'
import type { Admin, Shop } from '../deployment/shops.ts'
import type { LedgerContent } from '../ledger.ts'
import { checkBilling } from './billing.ts'
import { checkConversions, checkEvents, checkReceipts } from './events.ts'
import { computeOutcomes, type Outcome } from './outcomes.ts'
import { checkDeadLetters, settled } from './pipeline.ts'
import type { Problem } from './problems.ts'
import { checkOperations, checkRecords } from './records.ts'

// Entries accepted in the meantime are dated before the retention of operations.
const AGED_BY = 'old-backlog'

/** Compares the stored data with the ledger, through the public API and, where necessary, SQL. */
export async function reconcile({
  deployment,
  admin,
  shops,
  ledger,
  patienceMs,
}: {
  deployment: Deployment
  admin: Admin
  shops: Shop[]
  ledger: LedgerContent
  patienceMs: number
}): Promise<{ problems: Problem[]; outcomes: Outcome[] }> {
  const outcomes = [...computeOutcomes(ledger.attempts).values()]
  const url = deployment.processes.find(process => process.url)!.url!
  const isAged = (at: number) =>
    ledger.faults.some(({ name, from, until }) => name.includes(AGED_BY) && at >= from - 15_000 && at <= until + 1_000)
  const problems: Problem[] = ledger.violations.map(({ at, words }) => ({ kind: 'violation', words, at }))
  problems.push(...(await settled(deployment, admin, patienceMs)))
  for (const shop of shops) {
    const own = outcomes.filter(({ tenant }) => tenant === shop.tenant)
    for (const check of [checkRecords, checkEvents, checkConversions, checkBilling])
      problems.push(...(await check(url, shop, own)))
  }
  problems.push(...(await checkOperations(deployment.postgres, outcomes, isAged)))
  problems.push(...(await checkReceipts(deployment.postgres, outcomes)))
  problems.push(...(await checkDeadLetters(deployment.postgres, outcomes)))
  return { problems, outcomes }
}
