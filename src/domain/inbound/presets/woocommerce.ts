import { idText, type Preset, textOf, wholeBody } from '../preset.ts'
import { base64Bytes, verifyPlain } from '../signatures.ts'
import { woocommerceContradiction } from '../unsigned-names.ts'

export const woocommerce: Preset = {
  name: 'woocommerce',
  keepHeaders: [
    'x-wc-webhook-topic',
    'x-wc-webhook-delivery-id',
    'x-wc-webhook-id',
    'x-wc-webhook-source',
    'x-wc-webhook-resource',
  ],
  verify(request) {
    const header = request.headers['x-wc-webhook-signature']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    return verifyPlain(request, header, base64Bytes, 'woocommerce')
  },
  eventType: headers => textOf(headers['x-wc-webhook-topic']),
  // the delivery id is a hash that two webhooks of one shop may share
  eventId(headers, body) {
    const delivery = textOf(headers['x-wc-webhook-delivery-id'])
    if (delivery === null) return null
    return [delivery, textOf(headers['x-wc-webhook-topic']), idText(body.id)].filter(Boolean).join('/')
  },
  contradiction: (headers, body) =>
    woocommerceContradiction(textOf(headers['x-wc-webhook-topic']) ?? '', body),
  subject: wholeBody,
  // sent once, as a form and unsigned, when the webhook is saved
  isPing: body => body.length < 40 && /^webhook_id=\d+$/.test(body.toString('latin1').trim()),
}
