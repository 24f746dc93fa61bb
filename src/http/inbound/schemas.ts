import { type Static, Type } from 'typebox'
import { CDP_KINDS } from '../../domain/events/events.ts'
import { RejectedItems } from '../events/request.ts'

const examples = {
  webhook: {
    inbound_event_id: 'evt_1001',
    event_type: 'order.shipped',
    payload: { order_id: 'o-1', carrier: 'DHL' },
  },
  track: {
    type: 'track',
    messageId: 'm-1',
    event: 'Order Completed',
    anonymousId: 'v-1',
    properties: { order_id: 'o-1', total: 49.9, currency: 'EUR' },
  },
  identify: { type: 'identify', messageId: 'm-2', userId: 'u-1', traits: { email: 'jo@example.com' } },
}

/** Documentation: what a body may be depends on the source. */
export const InboundBody = Type.Union(
  [
    Type.Object(
      {
        inbound_event_id: Type.Optional(
          Type.String({
            description: 'Identifies duplicates. Default: the value at event_id_path, or a generated id.',
          }),
        ),
        event_type: Type.Optional(
          Type.String({ description: 'Required unless the source has event_type_override' }),
        ),
        payload: Type.Optional(Type.Object({}, { description: 'Default: the whole body' })),
        occurred_at: Type.Optional(Type.String({ format: 'timestamp' })),
      },
      {
        title: 'webhook, automation',
        description: "Or a Stripe event, or the format of the source's preset.",
      },
    ),
    Type.Object(
      {
        type: Type.Enum([...CDP_KINDS]),
        messageId: Type.Optional(Type.String({ description: 'Identifies duplicates' })),
        event: Type.Optional(Type.String({ description: 'For track: the name of the event' })),
        anonymousId: Type.Optional(Type.String()),
        userId: Type.Optional(Type.String()),
        properties: Type.Optional(Type.Object({})),
        traits: Type.Optional(Type.Object({})),
      },
      { title: 'cdp, one event' },
    ),
    Type.Object({ batch: Type.Array(Type.Object({})) }, { title: 'cdp, a batch of events' }),
    Type.Array(Type.Object({}), { title: 'any type: a list of events' }),
  ],
  {
    examples: [examples.webhook, examples.track, { batch: [examples.track, examples.identify] }],
  },
)

const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const InboundAnswer = Type.Object(
  {
    accepted: Count('Events that are durable and will be processed now'),
    duplicates: Count('Events that were processed before, or occur twice in this body'),
    deferred: Count('Events over the volume limit: durable, and processed when the limit allows'),
    rejected: Type.Array(Type.Object({ index: Type.Integer(), message: Type.String() }), {
      description:
        'Invalid items (kept as dead letters) and events dropped over the source’s limit; the first 100',
    }),
    rejected_total: RejectedItems.rejected_total,
  },
  {
    description:
      'The four numbers add up to the number of items in the request. If rejected_total is present, it is the number of rejected items.',
    examples: [
      { accepted: 1, duplicates: 0, deferred: 0, rejected: [] },
      { accepted: 2, duplicates: 1, deferred: 0, rejected: [{ index: 3, message: 'event is required' }] },
    ],
  },
)

export type InboundAnswer = Static<typeof InboundAnswer>

export const InboundParams = Type.Object({
  sourceConfigId: Type.String({ description: 'The id of the source: src_…' }),
})

export const DESCRIPTION = `Accepts an event or a batch from an external system. The source's settings decide about credentials and format.

* **Token**: \`Authorization: Bearer tok_…\`. A source with a preset (stripe, shopify, woocommerce, paddle …) and a signing
  secret accepts the provider's own signature or credential instead.
* **Signature**, where the source has a signing secret: \`t=<unix>,v1=<hex>\` with HMAC-SHA256(secret, "<t>." + raw body), at most
  300 s old; or \`sha256=<hex>\`, bare hex or base64 over the raw body, unless the source requires timestamps.
* The body is read as JSON whatever its Content-Type; gzip is accepted. 200 means: authenticated, valid and durable.
* Volume protection never changes the status: what is over the limit waits (\`deferred\`) or is dropped (\`rejected\`).
* Invalid items of a batch are listed in \`rejected\`, the others are accepted; a request without any valid item is answered 400.`
