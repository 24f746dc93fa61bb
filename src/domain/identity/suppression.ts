import { createHash } from 'node:crypto'
import { objectFields } from '../json/json.ts'
import type { RecordWrite } from '../records/records.ts'
import { publicTenantId } from '../tenants/tenants.ts'
import { KEPT_ORDER_FIELDS } from './erasure.ts'
import { type Identifier, parseEmail } from './identity.ts'

/** All that is kept of a name that is not to be recorded again. */
export function hashIdentifier(tenantId: number, { kind, value }: Identifier): Buffer {
  return createHash('sha256')
    .update(`${publicTenantId(tenantId)} ${kind} ${value}`)
    .digest()
}

/** Of all that somebody is called here; what is an address counts as one, whatever it was sent as. */
export function hashIdentifiers(tenantId: number, names: Identifier[]): Buffer[] {
  const hashes = new Map<string, Buffer>()
  for (const name of names) {
    const email = name.kind === 'email' ? null : parseEmail(name.value)
    for (const compared of email === null ? [name] : [name, { kind: 'email' as const, value: email }]) {
      const hash = hashIdentifier(tenantId, compared)
      hashes.set(hash.toString('hex'), hash)
    }
  }
  return [...hashes.values()]
}

/** An order as an erasure leaves it: enough for the accounts, and no name. Figures stay as they were written. */
export function anonymizeOrder(write: RecordWrite): RecordWrite {
  const kept = new Map(
    objectFields(write.dataText).filter(
      ([key, raw]) => KEPT_ORDER_FIELDS.includes(key) && !/^[[{n]/.test(raw),
    ),
  )
  const dataText = `{${[...kept].map(([key, raw]) => `${JSON.stringify(key)}:${raw}`).join(',')}}`
  const data = Object.fromEntries([...kept.keys()].map(key => [key, write.data[key]]))
  return { ...write, externalId: null, data, dataText }
}
