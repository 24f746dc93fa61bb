import { type Static, Type } from 'typebox'
import { CDP_KINDS } from '../../domain/events/events.ts'

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
            description: 'By it a repeat is recognised. Default: event_id_path, else one is made.',
          }),
        ),
        event_type: Type.Optional(
          Type.String({ description: "Required, unless the source's event_type_override gives one" }),
        ),
        payload: Type.Optional(Type.Object({}, { description: 'Default: the whole body' })),
        occurred_at: Type.Optional(Type.String({ format: 'timestamp' })),
      },
      {
        title: 'webhook, automation',
        description: "Also: a Stripe event, or what the source's preset reads.",
      },
    ),
    Type.Object(
      {
        type: Type.Enum([...CDP_KINDS]),
        messageId: Type.Optional(Type.String({ description: 'By it a repeat is recognised.' })),
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
    duplicates: Count('Events that were processed before, or stand twice in this body'),
    deferred: Count('Events over the volume limit: durable, and processed as the budget refills'),
    rejected: Type.Array(Type.Object({ index: Type.Integer(), message: Type.String() }), {
      description:
        'Items that are not valid (kept as dead letters), and events that a source in mode drop dropped over its limit',
    }),
  },
  {
    description: 'The four add up to the items of the request.',
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

export const DESCRIPTION = `Takes an event, or a batch, from an external system. Credentials and reading follow from the source.

* **Token**: \`Authorization: Bearer tok_…\`. A source with a preset (stripe, shopify, github, standard-webhooks) and a signing
  secret takes the provider's signature in its place.
* **Signature**, where the source has a signing secret: \`t=<unix>,v1=<hex>\` with HMAC-SHA256(secret, "<t>." + raw body), at most
  300 s old; or \`sha256=<hex>\`, bare hex or base64 over the raw body, unless the source requires timestamps.
* The body is JSON whatever the Content-Type says; gzip is accepted. 200 means: authenticated, read, durable.
* Volume protection never changes the status: what is over the limit waits (\`deferred\`) or is dropped (\`rejected\`).
* Bad items of a batch are named in \`rejected\`, the good ones are accepted; a request without one good item is a 400.`
