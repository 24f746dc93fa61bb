import { type Fields, readObject } from '../billing/fields.ts'
import { chargebee } from './adapters/chargebee.ts'
import { lago } from './adapters/lago.ts'
import { paddle } from './adapters/paddle.ts'

/** The customer that an event of a billing system is about; null where it is none of theirs, by its shape. */
export function customerIn(body: Fields): { id: unknown; email: unknown } | null {
  if (paddle.recognizes(body)) {
    const data = readObject(body.data)!
    const isCustomer = paddle.eventType(body).startsWith('customer.')
    return { id: isCustomer ? data.id : data.customer_id, email: isCustomer ? data.email : null }
  }
  if (chargebee.recognizes(body)) {
    const content = readObject(body.content)!
    const customer = readObject(content.customer)
    const named = readObject(content.subscription) ?? readObject(content.invoice)
    return { id: customer?.id ?? named?.customer_id, email: customer?.email }
  }
  if (lago.recognizes(body)) {
    const object = readObject(body[String(body.object_type)])!
    const customer = body.object_type === 'customer' ? object : readObject(object.customer)
    return { id: object.external_customer_id ?? customer?.external_id, email: customer?.email }
  }
  return null
}
