import { type Preset, textOf, wholeBody } from '../preset.ts'
import { base64Bytes, verifyPlain } from '../signatures.ts'
import { shopifyContradiction } from '../unsigned-names.ts'

export const shopify: Preset = {
  name: 'shopify',
  keepHeaders: [
    'x-shopify-topic',
    'x-shopify-webhook-id',
    'x-shopify-event-id',
    'x-shopify-shop-domain',
    'x-shopify-triggered-at',
  ],
  verify(request) {
    const header = request.headers['x-shopify-hmac-sha256']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    return verifyPlain(request, header, base64Bytes, 'shopify')
  },
  eventType: headers => textOf(headers['x-shopify-topic']),
  // the webhook id stays the same when a delivery is repeated
  eventId: headers => textOf(headers['x-shopify-webhook-id']) ?? textOf(headers['x-shopify-event-id']),
  contradiction: (headers, body) => shopifyContradiction(textOf(headers['x-shopify-topic']) ?? '', body),
  subject: wholeBody,
  // an order's is that of the member of staff who took it
  userId: () => null,
}
