import { type FetchOption, type RetryOptions } from './http.ts';
import { type QueueOptions } from './queue.ts';
import { type Api, type Records } from './records.ts';
import { type Subscriptions } from './subscriptions.ts';
import type { AliasCall, EventListOptions, GroupCall, IdentifyCall, PageCall, TrackedEvent } from './types.ts';
export type KontorOptions = FetchOption & RetryOptions & QueueOptions & {
    /** URL of Kontor, for example https://kontor.example. */
    url: string;
    /** URL of the event API, if it has its own host. */
    eventUrl?: string | undefined;
    /** private-…: for records, lists and reports. Use it only on servers. */
    privateKey?: string | undefined;
    /** trk_…: for track(). */
    trackingKey?: string | undefined;
};
/** A client of Kontor for the tenant of its keys. */
export declare class Kontor {
    #private;
    readonly products: Records;
    readonly contacts: Records;
    readonly orders: Records;
    readonly events: Events;
    readonly conversions: Conversions;
    readonly operations: Operations;
    readonly subscriptions: Subscriptions;
    constructor(options: KontorOptions);
    /**
     * Queues an event, which is sent in the background. Returns false and calls onError if the event is invalid or the queue is
     * full.
     */
    track(event: TrackedEvent): boolean;
    /** Says who a visitor is: `{ user_id, visitor, traits: { email } }`. Queued like an event. */
    identify(call: IdentifyCall): boolean;
    /** Says to which company a person belongs: `{ group_id, user_id, traits: { name } }`. Queued like an event. */
    group(call: GroupCall): boolean;
    /** Says that `previous_id` and `user_id` are the same person. Two user ids are linked only with a server key. */
    alias(call: AliasCall): boolean;
    /** A page view: `{ visitor, data: { url, referrer, title } }`. Queued like an event. */
    page(call: PageCall): boolean;
    /** Sends all tracked events. Rejects with the undelivered events as `error.events`; those that may still succeed stay queued. */
    flush(): Promise<void>;
    /** Sends all tracked events and accepts no more. Rejects with the undelivered events as `error.events`. */
    close(): Promise<void>;
}
export type Events = ReturnType<typeof openEvents>;
export type Conversions = ReturnType<typeof openConversions>;
export type Operations = ReturnType<typeof openOperations>;
declare function openConversions(api: Api): {
    /** Newest first, one row per sale. */
    list: ({ limit, ...query }?: EventListOptions) => AsyncGenerator<{
        amount: number | null;
        claims: number;
        company_name: string | null;
        contact_email: string | null;
        contact_id: string | null;
        contact_name: string | null;
        conversion_type: string;
        currency: string | null;
        event_type: string | null;
        id: string;
        integration_id: string | null;
        occurred_at: string;
        profile_id: string | null;
        source: "tracking" | "webhook" | "automation" | "cdp" | "orders" | "billing";
        source_object_id: string | null;
        verified: boolean;
        visitor: string | null;
    }, void, undefined>;
};
declare function openOperations(api: Api): {
    /** The status of a write by its operationId; null if there is none. */
    get: (id: string) => Promise<{
        acceptedAt: string;
        appliedAt: string | null;
        entityType: "product" | "contact" | "order";
        error: string | null;
        id: string | null;
        operationId: string;
        status: "queued" | "applied" | "superseded" | "failed";
    } | null>;
};
declare function openEvents(api: Api): {
    /** Newest first, without conversions. */
    list: ({ limit, ...query }?: EventListOptions) => AsyncGenerator<{
        contact_id: string | null;
        event_type: string;
        headers: Record<string, unknown>;
        id: string;
        inbound_event_id: string | null;
        meta: Record<string, unknown>;
        occurred_at: string;
        payload: unknown;
        profile_id: string | null;
        provider_event_id: string | null;
        received_at: string;
        session_id: string | null;
        source: "tracking" | "webhook" | "automation" | "cdp";
        source_config_id: string | null;
        source_type: "tracking" | "webhook" | "automation" | "cdp";
        verified: boolean;
        visitor: string | null;
    }, void, undefined>;
    /** How an event was processed, by its id in Kontor; null if there is no such event. */
    get: (id: string) => Promise<{
        attempts: number | null;
        conversion: boolean | null;
        duplicate_of: string | null;
        event: import("./openapi.ts").components["schemas"]["Event"] | null;
        failed_at: string | null;
        id: string;
        next_attempt_at: string | null;
        reason: string | null;
        received_at: string;
        replayed_as: string | null;
        replayed_at: string | null;
        status: "queued" | "deferred" | "stored" | "duplicate" | "dead_letter" | "dropped" | "suppressed";
    } | null>;
    /** The same, by the id that its sender assigned. */
    lookup: (query: {
        event_id: string;
        source_config_id?: string;
    }) => Promise<{
        attempts: number | null;
        conversion: boolean | null;
        duplicate_of: string | null;
        event: import("./openapi.ts").components["schemas"]["Event"] | null;
        failed_at: string | null;
        id: string;
        next_attempt_at: string | null;
        reason: string | null;
        received_at: string;
        replayed_as: string | null;
        replayed_at: string | null;
        status: "queued" | "deferred" | "stored" | "duplicate" | "dead_letter" | "dropped" | "suppressed";
    } | null>;
};
export {};
