// Generated from /openapi.json by `npm run sdk:types`. Do not edit. test/sdk/js/types.test.ts fails if it is outdated.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Welcome
         * @description Returns the URLs of the event API and the documentation. Requires no key.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            docs: string;
                            message: string;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/k.js": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Browser script
         * @description The first-party script for web pages: page views on load and on history changes, `kontor.track`, `kontor.identify`, visitor and session ids, retries, Do-Not-Track. Needs no credential: the tracking key is in the `data-key` attribute of the script tag.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/contact-names": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the names of contacts
         * @description The name of each contact, else its e-mail address. Contacts with neither are omitted. At most 200 ids.
         *
         *     Scope: `contacts:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description Separated by line breaks */
                    ids: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @description One row per contact with a name */
                            results: {
                                id: string;
                                name: string;
                            }[];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/contacts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List contacts
         * @description In the order of their last change, the oldest first by default. With `Accept: text/csv` the rows are returned as CSV.
         *
         *     Scope: `contacts:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description next_cursor of the previous page */
                    cursor?: components["parameters"]["cursor"];
                    /** @description Also list deleted records, with deleted: true */
                    include_deleted?: components["parameters"]["include_deleted"];
                    /** @description Number of rows; values above 100 are treated as 100 */
                    limit?: components["parameters"]["limit"];
                    /** @description By the last change */
                    order?: components["parameters"]["order"];
                    /** @description Inclusive lower bound of updatedAt */
                    updated_since?: components["parameters"]["updated_since"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            next_cursor: string | null;
                            results: components["schemas"]["Contact"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        /**
         * Create or update a contact
         * @description The write is durable when the response arrives, and is applied shortly after (see `GET /v1/operations/:operationId`, or send `Prefer: wait=N`). The version with the newest `sourceUpdatedAt` wins, in any order of arrival.
         *
         *     Scope: `contacts:write`.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A repeated key returns 200 with duplicate: true, and the change is not applied again. */
                    "x-idempotency-key"?: components["parameters"]["x-idempotency-key"];
                };
                path?: never;
                cookie?: never;
            };
            /** @description A version of a record */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordWrite"];
                };
            };
            responses: {
                /** @description The write is durable */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                /** @description The write is durable */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        /**
         * Delete a contact
         * @description A later write with a newer `sourceUpdatedAt` than the deletion restores the record; a write with an older one does not. You can also delete a record that Kontor has never received.
         *
         *     Scope: `contacts:write`.
         */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A repeated key returns 200 with duplicate: true, and the change is not applied again. */
                    "x-idempotency-key"?: components["parameters"]["x-idempotency-key"];
                };
                path?: never;
                cookie?: never;
            };
            /** @description A delete, by one identifier of the record */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordDelete"];
                };
            };
            responses: {
                /** @description The write is durable */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                /** @description The write is durable */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/contacts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a contact by ID
         * @description The latest version received. 404: the record was deleted or never received.
         *
         *     Scope: `contacts:read`.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path: {
                    /** @description Your identifier for the contact */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A contact in the latest version received */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Contact"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                404: components["responses"]["problem-404"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/contacts/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create or update up to 1,000 contacts
         * @description The body is {"records": [...]}, or one record per line with Content-Type: application/x-ndjson. Results are in the order of the records.
         *
         *     Scope: `contacts:write`.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A record without its own key uses this key with "#" and its index. */
                    "x-idempotency-key"?: string;
                };
                path?: never;
                cookie?: never;
            };
            /** @description Several versions of records */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordBatch"];
                };
            };
            responses: {
                /** @description One result per record, in the order of the request */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchResult"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List conversions
         * @description Newest first. With `Accept: text/csv` the rows are returned as CSV.
         *
         *     Scope: `conversions:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description next_cursor of the previous page. Faster than offset on later pages. */
                    cursor?: string;
                    /** @description Exact event type */
                    event_type?: components["parameters"]["event_type"];
                    /** @description Number of rows; values above 100 are treated as 100 */
                    limit?: components["parameters"]["limit"];
                    /** @description Number of rows to skip; prefer cursor */
                    offset?: number;
                    /** @description Inclusive lower bound of occurred_at */
                    since?: components["parameters"]["since"];
                    /** @description Inclusive upper bound of occurred_at. A date without a time includes that day */
                    until?: components["parameters"]["until"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            has_more: boolean;
                            limit: number;
                            next_cursor: string | null;
                            offset: number;
                            results: components["schemas"]["Conversion"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a conversion
         * @description Finds a conversion by its Kontor id. 404: no conversion has this id, or Kontor combined it with another report of the same sale.
         *
         *     Scope: `conversions:read`.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path: {
                    /** @description The Kontor id of the conversion: a UUID */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description An event that counts as a sale or as another goal */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Conversion"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                404: components["responses"]["problem-404"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/conversions/series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count conversions over time
         * @description Number and amounts of conversions per minute, hour or day, by the time they occurred, in the tenant’s time zone. Oldest bucket first, at most 1,500 buckets.
         *
         *     Scope: `conversions:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Only amounts in this currency (ISO 4217). `reporting`: amounts of all currencies, converted to `reporting_currency` of the policy by the rates of each day */
                    currency?: string;
                    /** @description Whether the last bucket ends at the minute of `until`. Use it to compare a past period with the current, incomplete period */
                    cut?: components["parameters"]["cut"];
                    /** @description Exact event type; for conversions, the event type or conversion_type */
                    event_type?: string;
                    /** @description Adds the values per group. Only the 100 largest groups are listed; `count` includes all groups */
                    group_by?: "event_type" | "source";
                    /** @description Length of a bucket */
                    interval?: "minute" | "hour" | "day";
                    /** @description The first bucket contains this time; default: 60 minutes, 24 hours or 30 days ago, depending on the interval */
                    since?: string;
                    /** @description The last bucket contains this time; default: now. A date without a time includes that day */
                    until?: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @enum {string} */
                            interval: "minute" | "hour" | "day";
                            /** @description One row per bucket */
                            results: {
                                /** @description By currency; conversions without a currency are counted but not summed */
                                amounts: {
                                    [key: string]: number;
                                };
                                /** Format: date-time */
                                at: string;
                                count: number;
                                /** @description With group_by: the same values per group */
                                groups?: {
                                    [key: string]: {
                                        /** @description By currency; conversions without a currency are counted but not summed */
                                        amounts: {
                                            [key: string]: number;
                                        };
                                        count: number;
                                    };
                                };
                            }[];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List dead letters
         * @description Items and entries of the tenant that were rejected or failed every attempt and are not closed, with the error, newest first. The admin API shows their bodies and replays them.
         *
         *     Scope: `events:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description next_cursor of the previous page */
                    cursor?: components["parameters"]["cursor"];
                    /** @description Number of rows; values above 100 are treated as 100 */
                    limit?: components["parameters"]["limit"];
                    /** @description rejected: invalid; failed: could not be applied */
                    reason?: "rejected" | "failed";
                    /** @description Only those of this source */
                    source_config_id?: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            next_cursor: string | null;
                            results: components["schemas"]["DeadLetter"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List events
         * @description Newest first. With `Accept: text/csv` the rows are returned as CSV.
         *
         *     Scope: `events:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description next_cursor of the previous page. Faster than offset on later pages. */
                    cursor?: string;
                    /** @description Exact event type */
                    event_type?: components["parameters"]["event_type"];
                    /** @description Number of rows; values above 100 are treated as 100 */
                    limit?: components["parameters"]["limit"];
                    /** @description Number of rows to skip; prefer cursor */
                    offset?: number;
                    /** @description Inclusive lower bound of occurred_at */
                    since?: components["parameters"]["since"];
                    /** @description Inclusive upper bound of occurred_at. A date without a time includes that day */
                    until?: components["parameters"]["until"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            has_more: boolean;
                            limit: number;
                            next_cursor: string | null;
                            offset: number;
                            results: components["schemas"]["Event"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an event
         * @description The state of an event or conversion, by its Kontor id. queued: accepted, not yet applied. deferred: above the rate limit of its source. duplicate: an event with the same id was processed before. dead_letter: it could not be processed; see reason.
         *
         *     Scope: `events:read`.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path: {
                    /** @description The Kontor id of the event: a UUID */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The outcome of an event */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EventOutcome"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                404: components["responses"]["problem-404"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream events
         * @description Streams new events as server-sent events. Every second, Kontor reads the newest 50 events and sends the new ones, oldest first, as `event: event` with the row of GET /v1/events as data. With `conversions`, Kontor also sends conversions, as `event: conversion` with the row of GET /v1/conversions. Events that are not among the newest 50 are not sent; the lists contain them. The stream ends when the key expires or is revoked. A tenant can have 25 streams at a time, or one while most of the 100 streams of the server are in use. Further requests get 503.
         *
         *     Scope: `events:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Include conversions; requires the scope conversions:read */
                    conversions?: boolean;
                    /** @description Exact event type */
                    event_type?: components["parameters"]["event_type"];
                    /** @description Duration of the stream; reconnect to continue */
                    seconds?: number;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description text/event-stream */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/lookup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look up an event by the sender’s id
         * @description By the `event_id` of a tracking event, the `messageId` of a CDP event or the `inbound_event_id` of a webhook. Returns whether it is queued, deferred, stored, a duplicate, a dead letter, dropped or suppressed, and why. Without `source_config_id`, tracking events are searched first, then the sources in order. 404: unknown event.
         *
         *     Scope: `events:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description event_id of a tracking event, or messageId of a CDP call */
                    event_id?: string;
                    /** @description Alias of event_id */
                    inbound_event_id?: string;
                    /** @description The source that received the event. Without it, Kontor searches tracking and CDP events first, then the sources */
                    source_config_id?: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The outcome of an event */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EventOutcome"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count events over time
         * @description Number of events (without conversions) per minute, hour or day, by the time they occurred, in the tenant’s time zone. Oldest bucket first, at most 1,500 buckets.
         *
         *     Scope: `events:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Whether the last bucket ends at the minute of `until`. Use it to compare a past period with the current, incomplete period */
                    cut?: components["parameters"]["cut"];
                    /** @description Exact event type; for conversions, the event type or conversion_type */
                    event_type?: string;
                    /** @description Adds the values per group. Only the 100 largest groups are listed; `count` includes all groups */
                    group_by?: "event_type" | "source";
                    /** @description Length of a bucket */
                    interval?: "minute" | "hour" | "day";
                    /** @description The first bucket contains this time; default: 60 minutes, 24 hours or 30 days ago, depending on the interval */
                    since?: string;
                    /** @description The last bucket contains this time; default: now. A date without a time includes that day */
                    until?: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @enum {string} */
                            interval: "minute" | "hour" | "day";
                            /** @description One row per bucket */
                            results: {
                                /** Format: date-time */
                                at: string;
                                count: number;
                                /** @description With group_by: the same values per group */
                                groups?: {
                                    [key: string]: {
                                        count: number;
                                    };
                                };
                            }[];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/visitors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count visitors over time
         * @description Number of distinct visitors per minute, hour or day, and in the whole period (`total`), in the tenant’s time zone. Oldest bucket first, at most 1,500 buckets.
         *
         *     Scope: `events:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Whether the last bucket ends at the minute of `until`. Use it to compare a past period with the current, incomplete period */
                    cut?: components["parameters"]["cut"];
                    /** @description Length of a bucket */
                    interval?: "minute" | "hour" | "day";
                    /** @description The first bucket contains this time; default: 60 minutes, 24 hours or 30 days ago, depending on the interval */
                    since?: string;
                    /** @description The last bucket contains this time; default: now. A date without a time includes that day */
                    until?: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Distinct visitors over time */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["VisitorSeries"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operations/{operationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an operation
         * @description The outcome of an accepted write: `queued`, then `applied`, `superseded` by a newer version of the record, or `failed`. Kept for 30 days. Requires the read or write scope of the record’s type.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path: {
                    /** @description operationId of the accepted write */
                    operationId: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The outcome of an accepted write */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Operation"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                404: components["responses"]["problem-404"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List orders
         * @description In the order of their last change, the oldest first by default. With `Accept: text/csv` the rows are returned as CSV.
         *
         *     Scope: `orders:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description next_cursor of the previous page */
                    cursor?: components["parameters"]["cursor"];
                    /** @description Also list deleted records, with deleted: true */
                    include_deleted?: components["parameters"]["include_deleted"];
                    /** @description Number of rows; values above 100 are treated as 100 */
                    limit?: components["parameters"]["limit"];
                    /** @description By the last change */
                    order?: components["parameters"]["order"];
                    /** @description Inclusive lower bound of updatedAt */
                    updated_since?: components["parameters"]["updated_since"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            next_cursor: string | null;
                            results: components["schemas"]["Order"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        /**
         * Create or update an order
         * @description The write is durable when the response arrives, and is applied shortly after (see `GET /v1/operations/:operationId`, or send `Prefer: wait=N`). The version with the newest `sourceUpdatedAt` wins, in any order of arrival.
         *
         *     Scope: `orders:write`.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A repeated key returns 200 with duplicate: true, and the change is not applied again. */
                    "x-idempotency-key"?: components["parameters"]["x-idempotency-key"];
                };
                path?: never;
                cookie?: never;
            };
            /** @description A version of a record */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordWrite"];
                };
            };
            responses: {
                /** @description The write is durable */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                /** @description The write is durable */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        /**
         * Delete an order
         * @description A later write with a newer `sourceUpdatedAt` than the deletion restores the record; a write with an older one does not. You can also delete a record that Kontor has never received.
         *
         *     Scope: `orders:write`.
         */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A repeated key returns 200 with duplicate: true, and the change is not applied again. */
                    "x-idempotency-key"?: components["parameters"]["x-idempotency-key"];
                };
                path?: never;
                cookie?: never;
            };
            /** @description A delete, by one identifier of the record */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordDelete"];
                };
            };
            responses: {
                /** @description The write is durable */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                /** @description The write is durable */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an order by ID
         * @description The latest version received. 404: the record was deleted or never received.
         *
         *     Scope: `orders:read`.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path: {
                    /** @description Your identifier for the order */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description An order in the latest version received */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Order"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                404: components["responses"]["problem-404"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create or update up to 1,000 orders
         * @description The body is {"records": [...]}, or one record per line with Content-Type: application/x-ndjson. Results are in the order of the records.
         *
         *     Scope: `orders:write`.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A record without its own key uses this key with "#" and its index. */
                    "x-idempotency-key"?: string;
                };
                path?: never;
                cookie?: never;
            };
            /** @description Several versions of records */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordBatch"];
                };
            };
            responses: {
                /** @description One result per record, in the order of the request */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchResult"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/products": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List products
         * @description In the order of their last change, the oldest first by default. With `Accept: text/csv` the rows are returned as CSV.
         *
         *     Scope: `products:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description next_cursor of the previous page */
                    cursor?: components["parameters"]["cursor"];
                    /** @description Also list deleted records, with deleted: true */
                    include_deleted?: components["parameters"]["include_deleted"];
                    /** @description Number of rows; values above 100 are treated as 100 */
                    limit?: components["parameters"]["limit"];
                    /** @description By the last change */
                    order?: components["parameters"]["order"];
                    /** @description Inclusive lower bound of updatedAt */
                    updated_since?: components["parameters"]["updated_since"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            next_cursor: string | null;
                            results: components["schemas"]["Product"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        /**
         * Create or update a product
         * @description The write is durable when the response arrives, and is applied shortly after (see `GET /v1/operations/:operationId`, or send `Prefer: wait=N`). The version with the newest `sourceUpdatedAt` wins, in any order of arrival.
         *
         *     Scope: `products:write`.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A repeated key returns 200 with duplicate: true, and the change is not applied again. */
                    "x-idempotency-key"?: components["parameters"]["x-idempotency-key"];
                };
                path?: never;
                cookie?: never;
            };
            /** @description A version of a record */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordWrite"];
                };
            };
            responses: {
                /** @description The write is durable */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                /** @description The write is durable */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        /**
         * Delete a product
         * @description A later write with a newer `sourceUpdatedAt` than the deletion restores the record; a write with an older one does not. You can also delete a record that Kontor has never received.
         *
         *     Scope: `products:write`.
         */
        delete: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A repeated key returns 200 with duplicate: true, and the change is not applied again. */
                    "x-idempotency-key"?: components["parameters"]["x-idempotency-key"];
                };
                path?: never;
                cookie?: never;
            };
            /** @description A delete, by one identifier of the record */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordDelete"];
                };
            };
            responses: {
                /** @description The write is durable */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                /** @description The write is durable */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AcceptedWrite"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/products/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a product by SKU
         * @description The latest version received. Kontor searches by `data.sku` first, then by id. 404: the record was deleted or never received.
         *
         *     Scope: `products:read`.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path: {
                    /** @description SKU or id */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A product in the latest version received */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Product"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                404: components["responses"]["problem-404"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/products/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create or update up to 1,000 products
         * @description The body is {"records": [...]}, or one record per line with Content-Type: application/x-ndjson. Results are in the order of the records.
         *
         *     Scope: `products:write`.
         */
        post: {
            parameters: {
                query?: never;
                header?: {
                    /** @description wait=N: waits up to N seconds (at most 10) until the change is applied, then responds. */
                    prefer?: string;
                    /** @description A record without its own key uses this key with "#" and its index. */
                    "x-idempotency-key"?: string;
                };
                path?: never;
                cookie?: never;
            };
            /** @description Several versions of records */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RecordBatch"];
                };
            };
            responses: {
                /** @description One result per record, in the order of the request */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["BatchResult"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search
         * @description Finds products, contacts, orders and events by exact id (events also by their sender’s id), and people by the beginning of an e-mail address, id, name or last name. Results that the key may not read are omitted.
         *
         *     Scope: `products:read` or `contacts:read` or `orders:read` or `events:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description Maximum number of results */
                    limit?: number;
                    /** @description An id, or the beginning of a name or address */
                    q: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            next_cursor: null;
                            results: components["schemas"]["SearchResult"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/account": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One account: summary, items, timeline
         * @description By `customer` or `subscription_id`. If both are given, they must belong together. With `Accept: text/csv`, the response is one of the lists as CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. */
                    currency: string;
                    /** @description The `customer` of an account row */
                    customer?: string;
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default items */
                    list?: "items" | "timeline";
                    /** @description Page of items */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                    /** @description Instead of customer: one of its subscriptions */
                    subscription_id?: string;
                    /** @description Page of timeline */
                    timeline_page?: number;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            currency: string;
                            /** @description One page of the list */
                            items: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["SubscriptionItem"][];
                            };
                            policy: components["schemas"]["ReportPolicy"];
                            summary: components["schemas"]["Account"];
                            /** @description One page of the list */
                            timeline: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["TimelineEntry"][];
                            };
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                404: components["responses"]["problem-404"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/acquisition": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Current MRR and retention by acquisition source
         * @description Every account has one source, or is `unattributed`, so the rows add up to MRR. With `Accept: text/csv`, the response is one of the lists as CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description restated: everything that is known now; as_closed: if the report ends in a closed month, what was known when the month was closed */
                    basis?: components["parameters"]["basis"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description The age of the cohort in days */
                    horizon?: 30 | 60 | 90;
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default sources */
                    list?: "sources";
                    /** @description Page of sources */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            coverage: components["schemas"]["Coverage"];
                            currency: string;
                            horizon: number;
                            /** @description Major units of the currency */
                            mrr: number;
                            policy: components["schemas"]["ReportPolicy"];
                            /** @description One page of the list */
                            sources: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["AcquisitionSource"][];
                            };
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/attention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Payment issues, renewals, scheduled cancellations, upcoming billing
         * @description Open payment issues are listed regardless of the window. With `Accept: text/csv`, the response is one of the lists as CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Page of upcoming_billing */
                    billing_page?: number;
                    /** @description Page of cancellations */
                    cancel_page?: number;
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description The number of days ahead */
                    days?: 30 | 60 | 90;
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description Page of payment_issues */
                    issue_page?: number;
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default payment_issues */
                    list?: "payment_issues" | "renewals" | "cancellations" | "upcoming_billing";
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Page of renewals */
                    renewal_page?: number;
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            /** @description One page of the list */
                            cancellations: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["Cancellation"][];
                            };
                            currency: string;
                            days: number;
                            /** @description One page of the list */
                            payment_issues: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["PaymentIssue"][];
                            };
                            policy: components["schemas"]["ReportPolicy"];
                            /** @description One page of the list */
                            renewals: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["Renewal"][];
                            };
                            /** @description One page of the list */
                            upcoming_billing: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["UpcomingBilling"][];
                            };
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/books": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Closed months and their restatements
         * @description Months that were closed with `kontor books close`, and what changed in them since. Reports with `basis=as_closed` return the figures of a closed month as they were when it was closed.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query?: {
                    /** @description YYYY-MM */
                    month?: string;
                    /** @description Page of the restatements */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Closed months, and the changes in them since */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Books"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/breakdown": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * MRR by plan, plan group, interval, source, channel, country or metadata
         * @description Computed per item, the largest row first. The rows add up to MRR. A subscription with several plans counts in each with its share. The country is that of the contact, else `metadata.country` of the subscription, else `unknown`. With `Accept: text/csv`, the response is CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description restated: everything that is known now; as_closed: if the report ends in a closed month, what was known when the month was closed */
                    basis?: components["parameters"]["basis"];
                    /** @description plan, plan_group, interval, source, channel, country, or metadata.KEY */
                    by: string;
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            /** @enum {string} */
                            by: "plan" | "plan_group" | "interval" | "source" | "channel" | "country" | "metadata";
                            currency: string;
                            /** @description Major units of the currency */
                            mrr: number;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["BreakdownRow"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/cash": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Invoiced and collected amounts by day, week or month
         * @description Each amount is the sum of the facts of its bucket (`/v1/subscriptions/cash/facts`) as of `as_of`. At most 1500 buckets. With `Accept: text/csv`, the response is CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Only items with this billing interval, as named in the breakdown */
                    billing_interval?: components["parameters"]["billing_interval"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. */
                    currency: string;
                    /** @description The first bucket contains this time; default: twelve months, including the current one */
                    from?: components["parameters"]["from"];
                    /** @description Weeks start on Monday */
                    interval?: "day" | "week" | "month";
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                    /** @description The last bucket contains this time, at the latest as_of; default: as_of. A date without a time includes that day */
                    to?: components["parameters"]["to"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            currency: string;
                            interval: string;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["CashBucket"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/cash/facts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Invoices and payments of a day, week or month
         * @description Each row contains its share of every amount, the oldest first. The columns add up to the row of the bucket. With `Accept: text/csv`, all rows are exported.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Only items with this billing interval, as named in the breakdown */
                    billing_interval?: components["parameters"]["billing_interval"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. */
                    currency: string;
                    /** @description Selects the bucket that contains this time */
                    date: string;
                    /** @description Length of the bucket */
                    interval?: "day" | "week" | "month";
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default facts */
                    list?: "facts";
                    /** @description Page of facts */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            count: number;
                            currency: string;
                            date: string;
                            interval: string;
                            page: number;
                            page_size: number;
                            pages: number;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["CashFact"][];
                            totals: components["schemas"]["CashTotals"];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/churn-reasons": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Churn by month and reason
         * @description Accounts that churned and the MRR they had, by the reason or feedback that the billing system reports. If the billing system reports none, the reason is `payment_failed` after failed payments, otherwise the cause of the movement, or `unknown`. Each month adds up to the churn of the history. Filters are not available. With `Accept: text/csv`, the response is CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description The first bucket contains this time; default: twelve months, including the current one */
                    from?: components["parameters"]["from"];
                    /** @description The last bucket contains this time, at the latest as_of; default: as_of. A date without a time includes that day */
                    to?: components["parameters"]["to"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            currency: string;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["ChurnReason"][];
                            totals: components["schemas"]["ChurnReasonTotal"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/consolidated": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * MRR of all currencies, converted by your exchange rates
         * @description One row per currency, with the rate used. `currency` selects the currency of the report. opening + new + expansion + reactivation − contraction − churn + fx = closing, over 30 days. Import rates with `kontor rates import`. With `Accept: text/csv`, the response is CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. */
                    currency: string;
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            active_subscriptions: number;
                            /** @description Major units of the currency */
                            arr: number;
                            /** Format: date-time */
                            as_of: string;
                            currency: string;
                            /** @description Currencies without a rate */
                            missing_rates: string[];
                            /** @description How MRR changed in the window */
                            movements: {
                                churn: number;
                                closing_mrr: number;
                                contraction: number;
                                expansion: number;
                                /** @description The effect of exchange rates: closing − opening − all movements */
                                fx: number;
                                new: number;
                                opening_mrr: number;
                                reactivation: number;
                                window_days: number;
                            };
                            /** @description Major units of the currency */
                            mrr: number;
                            /** @description Currencies whose rate is from an earlier day */
                            older_rates: string[];
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["CurrencyMrr"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/dunning": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Failed payments in a window: recovered, lost or open
         * @description One row per invoice, by the time of its first failed payment: failed = recovered + lost + open. An invoice is lost if it was written off or voided, or is open when its subscription ends. With `Accept: text/csv`, all rows are exported.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. */
                    currency: string;
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default invoices */
                    list?: "invoices";
                    /** @description Page of invoices */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Invoices whose first failed payment was after this; default: all. A date without a time includes that day */
                    since?: string;
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                    /** @description Up to and including this, as_of at the latest; default: as_of. A date without a time includes that day */
                    until?: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            count: number;
                            currency: string;
                            page: number;
                            page_size: number;
                            pages: number;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["DunningInvoice"][];
                            /** Format: date-time */
                            since: string;
                            /** @description By outcome */
                            totals: {
                                failed: components["schemas"]["CountAndAmount"];
                                lost: components["schemas"]["CountAndAmount"];
                                open: components["schemas"]["CountAndAmount"];
                                recovered: components["schemas"]["CountAndAmount"];
                                recovery_rate: number | null;
                            };
                            /** Format: date-time */
                            until: string;
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/exclusions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Excluded items, and their MRR by reason
         * @description The exclusions of the overview, with totals by reason. With `Accept: text/csv`, all rows are exported.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default exclusions */
                    list?: "exclusions";
                    /** @description Page of exclusions */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            by_reason: components["schemas"]["ExclusionReason"][];
                            count: number;
                            currency: string;
                            page: number;
                            page_size: number;
                            pages: number;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["Exclusion"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/forecast": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Scheduled changes and the resulting MRR by month
         * @description Not a prediction: it contains what is already scheduled (cancellations, starts, resumptions, ends of discounts), the ends of trials as if all convert, and renewals, which do not change MRR. The earliest change first. `as_of` is not available. With `Accept: text/csv`, all changes are exported.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default changes */
                    list?: "changes";
                    /** @description The number of months, including the current one */
                    months?: number;
                    /** @description Page of changes */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            count: number;
                            currency: string;
                            months: components["schemas"]["ForecastMonth"][];
                            /** @description Major units of the currency */
                            opening_mrr: number;
                            page: number;
                            page_size: number;
                            pages: number;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["ForecastChange"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * MRR by day, week or month
         * @description MRR at the end of each bucket and its movements, the oldest first, including empty buckets. The current bucket shows the state now. At most 1500 buckets. With `Accept: text/csv`, the response is CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description restated: everything that is known now; as_closed: if the report ends in a closed month, what was known when the month was closed */
                    basis?: components["parameters"]["basis"];
                    /** @description Only items with this billing interval, as named in the breakdown */
                    billing_interval?: components["parameters"]["billing_interval"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description The first bucket contains this time; default: twelve months, including the current one */
                    from?: components["parameters"]["from"];
                    /** @description Weeks start on Monday */
                    interval?: "day" | "week" | "month";
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Adds `retention` to each row: gross and net revenue retention over this number of months before the end of the bucket. At most 120 buckets */
                    retention_months?: 1 | 3 | 12;
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                    /** @description The last bucket contains this time, at the latest as_of; default: as_of. A date without a time includes that day */
                    to?: components["parameters"]["to"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            currency: string;
                            interval: string;
                            policy: components["schemas"]["ReportPolicy"];
                            /** @description Policy changes and their effect on MRR. All rows are computed by the current policy, so a policy change is not a movement */
                            policy_changes: components["schemas"]["PolicyChange"][];
                            results: components["schemas"]["HistoryBucket"][];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/movements": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Movements of MRR, the oldest or the largest first
         * @description After `since` and up to `until`, by effective time: opening + new + expansion + reactivation − contraction − churn = closing. With `Accept: text/csv`, all rows are exported.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description restated: everything that is known now; as_closed: if the report ends in a closed month, what was known when the month was closed */
                    basis?: components["parameters"]["basis"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default movements */
                    list?: "movements";
                    /** @description time: the oldest first; size: the largest change first, positive or negative */
                    order?: "time" | "size";
                    /** @description Page of movements */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Movements after this; default: all. A date without a time includes that day */
                    since?: string;
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                    /** @description Up to and including this, as_of at the latest; default: as_of. A date without a time includes that day */
                    until?: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            count: number;
                            currency: string;
                            page: number;
                            page_size: number;
                            pages: number;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["Movement"][];
                            /** Format: date-time */
                            since: string;
                            /** @description The sums of all movements in the window */
                            totals: {
                                /** @description Major units of the currency */
                                churn: number;
                                /** @description Major units of the currency */
                                closing_mrr: number;
                                /** @description Major units of the currency */
                                contraction: number;
                                /** @description Major units of the currency */
                                expansion: number;
                                /** @description The effect of exchange rates, with `currency=reporting` */
                                fx?: number;
                                /** @description Major units of the currency */
                                net: number;
                                /** @description Major units of the currency */
                                new: number;
                                /** @description Major units of the currency */
                                opening_mrr: number;
                                /** @description Major units of the currency */
                                reactivation: number;
                            };
                            /** Format: date-time */
                            until: string;
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Subscription overview
         * @description MRR with its movements and rates, the accounts, acquisition sources and exclusions behind it, and how complete the data is (`coverage`). With `Accept: text/csv`, the response is one of the lists as CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description Page of acquisition_sources */
                    acquisition_page?: number;
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description restated: everything that is known now; as_closed: if the report ends in a closed month, what was known when the month was closed */
                    basis?: components["parameters"]["basis"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description Page of exclusions */
                    exclusion_page?: number;
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default accounts */
                    list?: "accounts" | "acquisition_sources" | "exclusions";
                    /** @description Page of accounts */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @description One page of the list */
                            accounts: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["Account"][];
                            };
                            /** @description One page of the list */
                            acquisition_sources: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["AcquisitionSource"][];
                            };
                            active_accounts: number;
                            active_subscriptions: number;
                            /** @description Major units of the currency */
                            arpa: number;
                            /** @description Major units of the currency */
                            arr: number;
                            /** Format: date-time */
                            as_of: string;
                            /** @description The number of rows in the attention report for 30 days */
                            attention: {
                                cancellations: number;
                                payment_issues: number;
                                renewals: number;
                                upcoming_billing: number;
                            };
                            /** @description Payments of the window, and what was returned of them */
                            collected: {
                                /** @description Major units of the currency */
                                amount: number;
                                count: number;
                                /** @description Major units of the currency */
                                disputed: number;
                                /** @description Major units of the currency */
                                one_off: number;
                                /** @description Major units of the currency */
                                refunded: number;
                            };
                            /** @description Major units of the currency */
                            committed_mrr: number;
                            coverage: components["schemas"]["Coverage"];
                            currency: string;
                            /** @description One page of the list */
                            exclusions: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["Exclusion"][];
                            };
                            invoiced: components["schemas"]["AmountAndCount"];
                            /** @description How MRR changed in the window */
                            movements: {
                                /** @description Major units of the currency */
                                churn: number;
                                /** @description Major units of the currency */
                                closing_mrr: number;
                                /** @description Major units of the currency */
                                contraction: number;
                                /** @description Major units of the currency */
                                expansion: number;
                                /** @description The effect of exchange rates, with `currency=reporting` */
                                fx?: number;
                                /** @description Major units of the currency */
                                net: number;
                                /** @description Major units of the currency */
                                new: number;
                                /** @description Major units of the currency */
                                opening_mrr: number;
                                /** @description Major units of the currency */
                                reactivation: number;
                                window_days: number;
                            };
                            /** @description Major units of the currency */
                            mrr: number;
                            /** @description With `currency=reporting`: currencies whose rate is from an earlier day */
                            older_rates?: string[];
                            policy: components["schemas"]["ReportPolicy"];
                            rates: components["schemas"]["Rates"];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/retention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Monthly cohorts: gross and net revenue retention, logo retention
         * @description A cohort contains the accounts that first paid in a month. A row is the state of a cohort at the end of one month. With `Accept: text/csv`, the response is one of the lists as CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description restated: everything that is known now; as_closed: if the report ends in a closed month, what was known when the month was closed */
                    basis?: components["parameters"]["basis"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
                    currency: components["parameters"]["currency"];
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default cohorts */
                    list?: "cohorts";
                    /** @description The number of monthly cohorts, including the current month */
                    months?: number;
                    /** @description Page of cohorts */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description The starting MRR of a cohort: the first MRR of its accounts, or their MRR at the end of the first month; default: the setting of the policy */
                    retention_base?: "first_instant" | "end_of_month";
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            /** @description One page of the list */
                            cohorts: {
                                count: number;
                                page: number;
                                page_size: number;
                                pages: number;
                                results: components["schemas"]["Cohort"][];
                            };
                            currency: string;
                            months: number;
                            policy: components["schemas"]["ReportPolicy"];
                            /** @enum {string} */
                            retention_base: "first_instant" | "end_of_month";
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/revenue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Recognized and deferred revenue by month
         * @description Amounts of invoices without tax, spread evenly over the days of their service periods. deferred = the previous deferred + invoiced − recognized. The current month includes today. At most 1500 months. Filters are not available. With `Accept: text/csv`, the response is CSV.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. */
                    currency: string;
                    /** @description The first bucket contains this time; default: twelve months, including the current one */
                    from?: components["parameters"]["from"];
                    /** @description The last bucket contains this time, at the latest as_of; default: as_of. A date without a time includes that day */
                    to?: components["parameters"]["to"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            currency: string;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["RevenueMonth"][];
                            /** @description Why figures are incomplete; empty if they are complete */
                            warnings: string[];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/revenue/invoices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Invoices and credit notes behind the revenue of a month
         * @description One row per invoice or credit note and service period, by the day of the invoice. The columns add up to the row of the month. Filters are not available. With `Accept: text/csv`, all rows are exported.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. */
                    currency: string;
                    /** @description Selects the month that contains this time */
                    date: string;
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default invoices */
                    list?: "invoices";
                    /** @description Page of invoices */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            count: number;
                            currency: string;
                            date: string;
                            page: number;
                            page_size: number;
                            pages: number;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["RevenueFact"][];
                            totals: components["schemas"]["RevenueTotals"];
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/trials": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Trials that started in a window, and their outcomes
         * @description started = converted + expired + running. A trial converts when the subscription becomes active or past due. With `Accept: text/csv`, all rows are exported.
         *
         *     Scope: `subscriptions:read`.
         */
        get: {
            parameters: {
                query: {
                    /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
                    as_of?: components["parameters"]["as_of"];
                    /** @description Only accounts with this channel */
                    channel?: components["parameters"]["channel"];
                    /** @description Only accounts of this country, as named in the breakdown */
                    country?: components["parameters"]["country"];
                    /** @description The currency of the report: an ISO 4217 code in upper or lower case. */
                    currency: string;
                    /** @description Only items with this billing interval, as named in the breakdown */
                    interval?: components["parameters"]["interval"];
                    /** @description With Accept: text/csv, the list to export: all of it, or one page if a page is given; default trials */
                    list?: "trials";
                    /** @description Page of trials */
                    page?: number;
                    /** @description Rows per page; larger values are reduced to 100 */
                    page_size?: components["parameters"]["page_size"];
                    /** @description Only items of this plan, as named in the breakdown */
                    plan?: components["parameters"]["plan"];
                    /** @description Only items of plans in this group of the policy */
                    plan_group?: components["parameters"]["plan_group"];
                    /** @description Trials that started after this; default: all. A date without a time includes that day */
                    since?: string;
                    /** @description Only accounts with this acquisition source */
                    source?: components["parameters"]["source"];
                    /** @description Only subscriptions with this status */
                    status?: components["parameters"]["status"];
                    /** @description Up to and including this, as_of at the latest; default: as_of. A date without a time includes that day */
                    until?: string;
                };
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** Format: date-time */
                            as_of: string;
                            count: number;
                            currency: string;
                            page: number;
                            page_size: number;
                            pages: number;
                            policy: components["schemas"]["ReportPolicy"];
                            results: components["schemas"]["Trial"][];
                            /** Format: date-time */
                            since: string;
                            /** @description By outcome */
                            totals: {
                                conversion_rate: number | null;
                                converted: number;
                                expired: number;
                                running: number;
                                started: number;
                            };
                            /** Format: date-time */
                            until: string;
                        };
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenant": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the tenant of the key
         * @description Returns the time zone of the reports, the currencies that the tenant uses, and the reporting currency. A key with any scope can call this route.
         *
         *     Scope: `products:read` or `products:write` or `contacts:read` or `contacts:write` or `orders:read` or `orders:write` or `events:read` or `conversions:read` or `subscriptions:read`.
         */
        get: {
            parameters: {
                query?: never;
                header?: {
                    /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
                    prefer?: components["parameters"]["prefer"];
                };
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The settings of the tenant that reports depend on */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TenantFacts"];
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                403: components["responses"]["problem-403"];
                503: components["responses"]["problem-503"];
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/track": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Track an event
         * @description The body is parsed as JSON whatever its Content-Type. The response {} means that the event is durable. A CDP track call (event, messageId, …) is also accepted; its response is {"success": true}.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            /** @description An event in the native format */
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TrackedEvent"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, unknown>;
                    };
                };
                400: components["responses"]["problem-400"];
                401: components["responses"]["problem-401"];
                413: components["responses"]["problem-413"];
                415: components["responses"]["problem-415"];
                503: components["responses"]["problem-503"];
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The write is durable */
        AcceptedWrite: {
            accepted: boolean;
            duplicate: boolean;
            /** @enum {string} */
            entityType: "product" | "contact" | "order";
            id: string | null;
            /** Format: uuid */
            operationId: string;
            /** @description The idempotency key was first used with another body. */
            payloadMismatch?: boolean;
            /**
             * @description With Prefer: wait=N
             * @enum {string}
             */
            status?: "queued" | "applied" | "superseded" | "failed";
            warnings?: components["schemas"]["ValidationError"][];
        };
        /** @description A paying customer and the MRR of its subscriptions */
        Account: {
            /** @description `unattributed` if unknown */
            acquisition_source: string;
            active_subscriptions: number;
            arr: number;
            /** @description MRR without subscriptions that are scheduled to cancel */
            committed_mrr: number;
            customer: string;
            customer_email: string | null;
            customer_name: string | null;
            customer_since: string | null;
            has_payment_issue: boolean;
            mrr: number;
            next_billing_at: string | null;
            plan_names: string[];
            /** @description The first of active, past_due, trialing, paused, unpaid, incomplete, incomplete_expired, unknown and canceled that one of its subscriptions has */
            status: string;
            subscriptions: number;
        };
        /** @description The accounts of one acquisition source */
        AcquisitionSource: {
            /** @description Accounts with MRR */
            accounts: number;
            arpa: number;
            campaign: string | null;
            cohort_accounts: number | null;
            cohort_starting_mrr: number | null;
            medium: string | null;
            mrr: number;
            /** @description A fraction of 1 */
            mrr_share: number;
            retained_mrr: number | null;
            retention_rate: number | null;
            /** @enum {string} */
            retention_status: "available" | "insufficient_history" | "horizon_not_reached";
            /** @description `unattributed` if unknown */
            source: string;
            /** @description Subscriptions with MRR */
            subscriptions: number;
        };
        /** @description An amount and the number of its invoices or payments */
        AmountAndCount: {
            /** @description Major units of the currency */
            amount: number;
            count: number;
        };
        /** @description One result per record, in the order of the request */
        BatchResult: {
            results: components["schemas"]["BatchRow"][];
        };
        /** @description Whether one record was accepted */
        BatchRow: {
            accepted: boolean;
            duplicate?: boolean;
            /** @enum {string} */
            entityType?: "product" | "contact" | "order";
            /** @description Why the item was rejected */
            errors?: components["schemas"]["ValidationError"][];
            id?: string | null;
            index: number;
            /** Format: uuid */
            operationId?: string;
            /** @description The idempotency key was first used with another body. */
            payloadMismatch?: boolean;
            /**
             * @description With Prefer: wait=N
             * @enum {string}
             */
            status?: "queued" | "applied" | "superseded" | "failed";
            warnings?: components["schemas"]["ValidationError"][];
        };
        /** @description Closed months, and the changes in them since */
        Books: {
            count: number;
            /** @description Newest first */
            months: components["schemas"]["ClosedMonth"][];
            page: number;
            page_size: number;
            pages: number;
            /** @description Restatements, newest first */
            results: {
                /** @description The change of the customer’s MRR at the end of the month; 0 if only movements within the month changed */
                amount: number;
                currency: string;
                customer: string;
                event_id: string | null;
                /** @description YYYY-MM */
                month: string;
                /** Format: date-time */
                received_at: string;
            }[];
        };
        /** @description The MRR of one plan, country or other segment */
        BreakdownRow: {
            /** @description Accounts with a part of this MRR */
            accounts: number;
            /** @description Present if `by` selects it */
            channel?: string;
            /** @description Present if `by` selects it */
            country?: string;
            /** @description Present if `by` selects it */
            interval?: string;
            /** @description Present if `by` selects it */
            metadata?: string;
            mrr: number;
            /** @description Present if `by` selects it */
            plan?: string;
            /** @description Present if `by` selects it */
            plan_group?: string;
            /** @description Present if `by` selects it */
            source?: string;
            /** @description Subscriptions with a part of this MRR */
            subscriptions: number;
        };
        /** @description A subscription that is scheduled to cancel */
        Cancellation: {
            /** Format: date-time */
            cancels_at: string;
            customer: string;
            customer_name: string | null;
            days_until: number;
            mrr_at_risk: number;
            reason: string | null;
            requested_at: string | null;
            subscription_id: string;
        };
        /** @description Invoiced and collected amounts of one day, week or month */
        CashBucket: {
            /** @description Payments of subscription invoices − refunded − disputed */
            collected: number;
            /** @description The first day of the bucket */
            date: string;
            /** @description Lost disputes of these payments */
            disputed: number;
            /** @description By finalized_at, including tax, without draft and void invoices */
            invoiced: number;
            invoices: number;
            /** @description Payments without a subscription, minus their refunds and lost disputes */
            one_off: number;
            /** @description The unpaid part of the invoiced amount */
            outstanding: number;
            payments: number;
            /** @description Refunds of these payments, and paid-out credit notes */
            refunded: number;
        };
        /** @description An invoice, payment, refund or dispute */
        CashFact: {
            amount: number;
            /** @description Payments of subscription invoices − refunded − disputed */
            collected: number;
            customer: string | null;
            /** @description Lost disputes of these payments */
            disputed: number;
            id: string;
            invoice_id: string | null;
            /** @description By finalized_at, including tax, without draft and void invoices */
            invoiced: number;
            /** @enum {string} */
            kind: "invoice" | "payment" | "refund" | "dispute";
            /** Format: date-time */
            occurred_at: string;
            /** @description Payments without a subscription, minus their refunds and lost disputes */
            one_off: number;
            /** @description The unpaid part of the invoiced amount */
            outstanding: number;
            /** @description Refunds of these payments, and paid-out credit notes */
            refunded: number;
            subscription_id: string | null;
        };
        /** @description The sums of the rows */
        CashTotals: {
            /** @description Payments of subscription invoices − refunded − disputed */
            collected: number;
            /** @description Lost disputes of these payments */
            disputed: number;
            /** @description By finalized_at, including tax, without draft and void invoices */
            invoiced: number;
            /** @description Payments without a subscription, minus their refunds and lost disputes */
            one_off: number;
            /** @description The unpaid part of the invoiced amount */
            outstanding: number;
            /** @description Refunds of these payments, and paid-out credit notes */
            refunded: number;
        };
        /** @description The churn of one month with one reason */
        ChurnReason: {
            accounts: number;
            /** @description The first day of the month */
            date: string;
            /** @description The MRR that was lost */
            mrr: number;
            /** @description As the billing system reports it; `unknown` if it reports none */
            reason: string;
        };
        /** @description The churn with one reason */
        ChurnReasonTotal: {
            accounts: number;
            /** @description The MRR that was lost */
            mrr: number;
            /** @description As the billing system reports it; `unknown` if it reports none */
            reason: string;
        };
        /** @description A month whose figures are kept */
        ClosedMonth: {
            /** Format: date-time */
            closed_at: string;
            closed_by: string;
            /** @description YYYY-MM */
            month: string;
            /** @description The version of the policy by which its figures were computed */
            policy_version: number;
            /** @description The number of changes since the month was closed */
            restatements: number;
            /** @description The time zone of the month */
            time_zone: string;
        };
        /** @description The accounts that first paid in one month, some months later */
        Cohort: {
            /** @description Accounts of the cohort with MRR at that time */
            accounts: number;
            /**
             * Format: date-time
             * @description The end of that month, at the latest as_of
             */
            at: string;
            /** @description The month in which its accounts first paid */
            cohort: string;
            /** @description The same, but no account counts for more than its starting MRR */
            gross_mrr: number;
            gross_revenue_retention: number | null;
            logo_retention: number | null;
            /** @description Months after the first one: 0 is the end of the first month */
            month: number;
            mrr: number;
            net_revenue_retention: number | null;
            starting_accounts: number;
            /** @description Their first MRR, or their MRR at the end of the first month (retention_base) */
            starting_mrr: number;
        };
        /** @description A contact in the latest version received */
        Contact: {
            /** Format: date-time */
            createdAt: string;
            data: Record<string, unknown> | null;
            /** @description Only in lists, with include_deleted */
            deleted?: boolean;
            /** @enum {string} */
            entityType: "product" | "contact" | "order";
            externalId: string | null;
            /** @description Your identifier for the record */
            id: string;
            /** Format: date-time */
            sourceUpdatedAt: string;
            /** Format: date-time */
            updatedAt: string;
        };
        /** @description An event that counts as a sale or as another goal */
        Conversion: {
            amount: number | null;
            /** @description Number of unverified events that refer to the sale */
            claims: number;
            company_name: string | null;
            contact_email: string | null;
            contact_id: string | null;
            contact_name: string | null;
            conversion_type: string;
            currency: string | null;
            event_type: string | null;
            /** Format: uuid */
            id: string;
            integration_id: string | null;
            /** Format: date-time */
            occurred_at: string;
            profile_id: string | null;
            /** @enum {string} */
            source: "tracking" | "webhook" | "automation" | "cdp" | "orders" | "billing";
            source_object_id: string | null;
            /** @description Whether verified input reports the sale: an order record, an inbound source or a server key */
            verified: boolean;
            visitor: string | null;
        };
        /** @description A number of invoices and their amount */
        CountAndAmount: {
            /** @description Major units of the currency */
            amount: number;
            count: number;
        };
        /** @description How much of the received data the report contains */
        Coverage: {
            accounts_attributed: number;
            attribution_rate: number;
            first_event_at: string | null;
            /** @description Invoices without a subscription, or with one that has not arrived */
            invoices_without_subscription: number;
            /** @description Items whose price per month is known */
            items_priced: number;
            items_seen: number;
            last_event_at: string | null;
            movements_complete: boolean;
            snapshot_days_available: number;
            snapshot_first_at: string | null;
            /** @description Days without a snapshot, since the first snapshot */
            snapshot_gaps: number;
            subscriptions_excluded: number;
            subscriptions_included: number;
            subscriptions_seen: number;
            /** @description Events of a provider's test mode, which are not counted in any total */
            test_events: number;
            /** @description By type, the events that seem to be about billing but were not recognized */
            unrecognized: {
                [key: string]: number;
            };
            warnings: string[];
        };
        /** @description The MRR of one currency, converted to the currency of the report */
        CurrencyMrr: {
            active_subscriptions: number;
            churn: number | null;
            closing_mrr: number | null;
            contraction: number | null;
            /** @description The currency of the subscriptions */
            currency: string;
            expansion: number | null;
            fx: number | null;
            mrr: number | null;
            new: number | null;
            opening_mrr: number | null;
            /** @description In that currency */
            own_mrr: number;
            rate: number | null;
            rate_date: string | null;
            reactivation: number | null;
        };
        /** @description An entry or item that was rejected or failed every attempt */
        DeadLetter: {
            attempts: number;
            error: string;
            /** Format: date-time */
            failed_at: string;
            /**
             * Format: uuid
             * @description For a record write, the operation id
             */
            id: string;
            inbound_event_id: string | null;
            /** @enum {string} */
            kind: "record" | "events";
            /**
             * @description rejected: the item is invalid; failed: it could not be applied
             * @enum {string}
             */
            reason: "rejected" | "failed";
            /** Format: date-time */
            received_at: string;
            replayed_as: string | null;
            replayed_at: string | null;
            resolved_at: string | null;
            source_config_id: string | null;
            tenant: string;
        };
        /** @description An invoice with a failed payment, and its outcome */
        DunningInvoice: {
            /** @description The amount owed at that time */
            amount: number;
            customer: string | null;
            /**
             * Format: date-time
             * @description The time of the first failed payment
             */
            failed_at: string;
            failure_code: string | null;
            failure_message: string | null;
            invoice_id: string;
            invoice_number: string | null;
            /** @enum {string} */
            outcome: "recovered" | "lost" | "open";
            resolved_at: string | null;
            subscription_id: string | null;
        };
        /** @description An event in the format that Kontor uses for events of all sources */
        Event: {
            contact_id: string | null;
            event_type: string;
            headers: Record<string, unknown>;
            /** Format: uuid */
            id: string;
            inbound_event_id: string | null;
            meta: Record<string, unknown>;
            /** Format: date-time */
            occurred_at: string;
            payload: unknown;
            profile_id: string | null;
            provider_event_id: string | null;
            /** Format: date-time */
            received_at: string;
            session_id: string | null;
            /** @enum {string} */
            source: "tracking" | "webhook" | "automation" | "cdp";
            source_config_id: string | null;
            /** @enum {string} */
            source_type: "tracking" | "webhook" | "automation" | "cdp";
            /** @description Whether an inbound source or a server key sent the event, not a public tracking key */
            verified: boolean;
            visitor: string | null;
        };
        /** @description The outcome of an event */
        EventOutcome: {
            attempts: number | null;
            conversion: boolean | null;
            duplicate_of: string | null;
            event: components["schemas"]["Event"] | null;
            failed_at: string | null;
            /** Format: uuid */
            id: string;
            next_attempt_at: string | null;
            reason: string | null;
            /** Format: date-time */
            received_at: string;
            replayed_as: string | null;
            replayed_at: string | null;
            /** @enum {string} */
            status: "queued" | "deferred" | "stored" | "duplicate" | "dead_letter" | "dropped" | "suppressed";
        };
        /** @description A subscription item that is excluded from MRR */
        Exclusion: {
            customer: string | null;
            customer_name: string | null;
            excluded_mrr: number | null;
            fix_hint: string;
            item_id: string | null;
            reason: string;
            reason_code: string;
            /** Format: date-time */
            since: string;
            status: string | null;
            subscription_id: string;
        };
        /** @description The items that are excluded for one reason */
        ExclusionReason: {
            /** @description The gross MRR that the items with a known price would have */
            excluded_mrr: number;
            items: number;
            reason: string;
            reason_code: string;
            /** @description Items that cannot be priced */
            unpriced: number;
        };
        /** @description A scheduled change, or the end of a trial */
        ForecastChange: {
            amount: number | null;
            /** Format: date-time */
            at: string;
            customer: string;
            customer_name: string | null;
            /** @enum {string} */
            kind: "renewal" | "trial_end" | "discount_end" | "cancellation" | "start" | "resume" | "other";
            mrr_delta: number;
            subscription_id: string;
        };
        /** @description The MRR of a future month, if only the scheduled changes happen */
        ForecastMonth: {
            churn: number;
            contraction: number;
            /** @description The first day of the month */
            date: string;
            expansion: number;
            /** @description At the end of the month */
            mrr: number;
            /** @description The change of MRR since the previous month */
            net: number;
            new: number;
            reactivation: number;
            /** @description The MRR of trials that end in the month, before discounts */
            trial_ends: number;
        };
        /** @description MRR and its movements in one day, week or month */
        HistoryBucket: {
            /** @description Accounts with MRR */
            active_accounts: number;
            /** @description Subscriptions with MRR */
            active_subscriptions: number;
            arr: number;
            churn: number;
            /** @description Accounts with MRR at the start of the bucket and none at its end */
            churned_accounts: number;
            contraction: number;
            /** @description The first day of the bucket */
            date: string;
            expansion: number;
            /** @description The effect of exchange rates, with `currency=reporting` */
            fx?: number;
            /** @description At the end of the bucket; in the current bucket, now */
            mrr: number;
            /** @description new + expansion + reactivation − contraction − churn: the change of MRR since the previous bucket */
            net: number;
            new: number;
            /** @description Accounts with their first MRR in the bucket */
            new_accounts: number;
            /** @description Over the bucket; null if the base is 0. The formulas are in policy.rates */
            rates: {
                customer_churn_rate: number | null;
                gross_mrr_churn_rate: number | null;
                gross_revenue_retention: number | null;
                ltv: number | null;
                net_mrr_churn_rate: number | null;
                net_revenue_retention: number | null;
                quick_ratio: number | null;
            };
            reactivation: number;
            /** @description With retention_months: of the accounts with MRR that many months before the end of the bucket */
            retention?: {
                gross_revenue_retention: number | null;
                months: number;
                net_revenue_retention: number | null;
            };
        };
        /** @description A change of the MRR of an account */
        Movement: {
            /**
             * @description The cause of the largest change, if there are several. other: for example, a subscription that becomes active again
             * @enum {string}
             */
            cause: "new_subscription" | "additional_subscription" | "quantity" | "price" | "plan" | "discount" | "discount_end" | "item_added" | "item_removed" | "pause" | "resume" | "trial_end" | "cancellation_voluntary" | "cancellation_failed_payment" | "other";
            customer: string;
            customer_name: string | null;
            /** @description The source event */
            event_id: string | null;
            /** @enum {string} */
            movement_type: "new" | "expansion" | "contraction" | "churn" | "reactivation";
            mrr_after: number;
            mrr_before: number;
            mrr_delta: number;
            /** Format: date-time */
            occurred_at: string;
            subscription_ids: string[];
        };
        /** @description The outcome of an accepted write */
        Operation: {
            /** Format: date-time */
            acceptedAt: string;
            appliedAt: string | null;
            /** @enum {string} */
            entityType: "product" | "contact" | "order";
            error: string | null;
            id: string | null;
            /** Format: uuid */
            operationId: string;
            /** @enum {string} */
            status: "queued" | "applied" | "superseded" | "failed";
        };
        /** @description An order in the latest version received */
        Order: {
            /** Format: date-time */
            createdAt: string;
            data: Record<string, unknown> | null;
            /** @description Only in lists, with include_deleted */
            deleted?: boolean;
            /** @enum {string} */
            entityType: "product" | "contact" | "order";
            externalId: string | null;
            /** @description Your identifier for the record */
            id: string;
            /** Format: date-time */
            sourceUpdatedAt: string;
            /** Format: date-time */
            updatedAt: string;
        };
        /** @description An invoice or subscription that is not paid */
        PaymentIssue: {
            amount_due: number | null;
            amount_remaining: number | null;
            attempt_count: number | null;
            customer: string | null;
            customer_name: string | null;
            days_overdue: number | null;
            due_at: string | null;
            failure_code: string | null;
            failure_message: string | null;
            invoice_id: string | null;
            invoice_number: string | null;
            /** @enum {string} */
            issue_type: "payment_failed" | "action_required" | "overdue" | "uncollectible" | "subscription_unpaid";
            mrr_at_risk: number;
            next_payment_attempt_at: string | null;
            subscription_id: string | null;
        };
        /** @description A change of the policy and its effect on MRR */
        PolicyChange: {
            /**
             * Format: date-time
             * @description The time from which reports use it
             */
            at: string;
            /** @constant */
            kind: "policy";
            mrr_after: number | null;
            mrr_before: number | null;
            mrr_delta: number | null;
            /** @description Changed settings: by name, `{before, after}` */
            settings: Record<string, unknown>;
            version: number;
        };
        /** @description Every error response has this format (RFC 9457) */
        Problem: {
            /** @description With the code person_ambiguous: the people who have this identifier. `name` is the identifier with its kind, for example user:42 */
            choices?: {
                name: string;
                profile_id: string;
            }[];
            /** @description Stable error code in snake_case, for programs */
            code: string;
            /** @description Explanation for humans */
            detail: string;
            /** @description All validation errors of the request */
            errors?: components["schemas"]["ValidationError"][];
            /** @description The value of the header X-Request-Id */
            request_id: string;
            status: number;
            title: string;
            /** @description A URN formed from the code */
            type: string;
        };
        /** @description A product in the latest version received */
        Product: {
            /** Format: date-time */
            createdAt: string;
            data: Record<string, unknown> | null;
            /** @description Only in lists, with include_deleted */
            deleted?: boolean;
            /** @enum {string} */
            entityType: "product" | "contact" | "order";
            externalId: string | null;
            /** @description Your identifier for the record */
            id: string;
            /** Format: date-time */
            sourceUpdatedAt: string;
            /** Format: date-time */
            updatedAt: string;
        };
        /** @description Over the 30 days of the movements; null if the base is 0. The formulas are in policy.rates */
        Rates: {
            customer_churn_rate: number | null;
            gross_mrr_churn_rate: number | null;
            gross_revenue_retention: number | null;
            ltv: number | null;
            net_mrr_churn_rate: number | null;
            net_revenue_retention: number | null;
            quick_ratio: number | null;
        };
        /** @description Several versions of records */
        RecordBatch: {
            records: components["schemas"]["RecordWrite"][];
        };
        /** @description A delete, by one identifier of the record */
        RecordDelete: {
            /** @description For products: sku or code, instead of id. */
            data?: Record<string, unknown>;
            /** @enum {string} */
            entityType: "product" | "contact" | "order";
            externalId?: string;
            id?: string;
            idempotencyKey?: string;
            /**
             * Format: date-time
             * @description When the delete happened in your system.
             */
            sourceUpdatedAt: string;
        };
        /** @description A version of a record */
        RecordWrite: {
            /** @description All fields of the record; replaces the previous ones. */
            data?: Record<string, unknown>;
            /** @enum {string} */
            entityType: "product" | "contact" | "order";
            /** @description A second identifier */
            externalId?: string;
            /** @description Your identifier for the record */
            id: string;
            /** @description May be sent as header x-idempotency-key instead; the header takes precedence. */
            idempotencyKey?: string;
            /**
             * Format: date-time
             * @description When the record last changed in your system. The newest change wins, in whatever order changes arrive.
             */
            sourceUpdatedAt: string;
        };
        /** @description A subscription that renews soon */
        Renewal: {
            customer: string;
            customer_name: string | null;
            days_until: number;
            has_payment_issue: boolean;
            interval: string;
            interval_count: number;
            mrr: number;
            renewal_amount: number | null;
            /** Format: date-time */
            renews_at: string;
            subscription_id: string;
        };
        /** @description How MRR is computed: the settings of the tenant, their version, and all rules */
        ReportPolicy: Record<string, unknown>;
        /** @description The share of an invoice or credit note in one month */
        RevenueFact: {
            /** @description Without tax; negative in rows of a credit note */
            amount: number;
            credit_note_id: string | null;
            customer: string | null;
            customer_name: string | null;
            /** @description Invoiced and not yet recognized at the end of the month; negative: recognized and not yet invoiced */
            deferred: number;
            invoice_id: string;
            invoice_number: string | null;
            /** @description Finalized invoices less credit notes, without tax, draft, void and uncollectible invoices */
            invoiced: number;
            /** @description The day on which the amount counts as invoiced */
            invoiced_on: string;
            /** @description The share of the days of the month */
            recognized: number;
            /** @description The first day after it */
            service_end: string;
            /** @description The first day of the service period */
            service_start: string;
            subscription_id: string | null;
        };
        /** @description Invoiced, recognized and deferred revenue of one month */
        RevenueMonth: {
            /** @description The first day of the month */
            date: string;
            /** @description Invoiced and not yet recognized at the end of the month; negative: recognized and not yet invoiced */
            deferred: number;
            /** @description Finalized invoices less credit notes, without tax, draft, void and uncollectible invoices */
            invoiced: number;
            /** @description The share of the days of the month */
            recognized: number;
        };
        /** @description The sums of the rows */
        RevenueTotals: {
            /** @description Invoiced and not yet recognized at the end of the month; negative: recognized and not yet invoiced */
            deferred: number;
            /** @description Finalized invoices less credit notes, without tax, draft, void and uncollectible invoices */
            invoiced: number;
            /** @description The share of the days of the month */
            recognized: number;
        };
        /** @description A record, an event or a person */
        SearchResult: {
            /** @description For a person: the profile id */
            id: string;
            /** @enum {string} */
            kind: "product" | "contact" | "order" | "event" | "person";
            note: string | null;
            title: string;
        };
        /** @description An item of a subscription and its MRR */
        SubscriptionItem: {
            currency: string | null;
            current_period_end: string | null;
            current_period_start: string | null;
            discount_mrr: number;
            exclusion_reason: string | null;
            gross_mrr: number;
            included: boolean;
            interval: string | null;
            interval_count: number | null;
            item_id: string | null;
            mrr: number;
            plan_name: string | null;
            price_id: string | null;
            quantity: number | null;
            subscription_id: string;
            unit_amount: number | null;
            usage_type: string | null;
        };
        /** @description The settings of the tenant that reports depend on */
        TenantFacts: {
            /** @description Currencies of subscriptions and recent sales. The one with the most paying accounts is first */
            currencies: string[];
            id: string;
            reporting_currency: string | null;
            /** @description IANA time zone of days, weeks and months in reports */
            time_zone: string;
        };
        /** @description Something that happened to an account */
        TimelineEntry: {
            amount: number | null;
            /** @enum {string} */
            category: "subscription" | "invoice" | "payment" | "refund" | "movement";
            cause: ("new_subscription" | "additional_subscription" | "quantity" | "price" | "plan" | "discount" | "discount_end" | "item_added" | "item_removed" | "pause" | "resume" | "trial_end" | "cancellation_voluntary" | "cancellation_failed_payment" | "other") | null;
            description: string;
            event_id: string | null;
            event_type: string;
            invoice_id: string | null;
            movement_type: string | null;
            mrr_after: number | null;
            mrr_before: number | null;
            mrr_delta: number | null;
            /** Format: date-time */
            occurred_at: string;
            subscription_id: string | null;
        };
        /** @description An event in the native format */
        TrackedEvent: {
            /** @description Event data; `page` is the URL */
            data?: Record<string, unknown>;
            /** @description Identifies duplicates: a second event with the same id is ignored */
            event_id?: string;
            /** @description Event name, for example page_view or convert */
            event_type: string;
            /**
             * Format: date-time
             * @description Default: the time of receipt
             */
            occurred_at?: string;
            /** @description Session identifier */
            session_id?: string;
            user_id?: string;
            /** @description Visitor identifier */
            visitor?: string;
        };
        /** @description A trial and its outcome */
        Trial: {
            customer: string;
            ended_at: string | null;
            /** @description MRR at the conversion */
            mrr: number;
            /** @enum {string} */
            outcome: "converted" | "expired" | "running";
            plan_names: string[];
            /** Format: date-time */
            started_at: string;
            subscription_id: string;
            trial_end: string | null;
        };
        /** @description A subscription that will be charged soon */
        UpcomingBilling: {
            /** Format: date-time */
            bills_at: string;
            collection_method: string | null;
            customer: string;
            customer_name: string | null;
            days_until: number;
            estimated_amount: number | null;
            includes_metered: boolean;
            is_trial_conversion: boolean;
            subscription_id: string;
        };
        /** @description What is wrong with a request, and where in it */
        ValidationError: {
            message: string;
            /** @description JSON pointer into the body, or `/` and a parameter name */
            pointer: string;
        };
        /** @description Distinct visitors over time */
        VisitorSeries: {
            /** @enum {string} */
            interval: "minute" | "hour" | "day";
            /** @description One row per bucket */
            results: {
                /** Format: date-time */
                at: string;
                count: number;
            }[];
            /** @description Distinct visitors of the whole period, not the sum of the buckets */
            total: number;
        };
    };
    responses: {
        /** @description Invalid request */
        "problem-400": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Not authenticated */
        "problem-401": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Insufficient scope */
        "problem-403": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Not found */
        "problem-404": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Payload too large */
        "problem-413": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Unsupported media type */
        "problem-415": {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Service unavailable */
        "problem-503": {
            headers: {
                /** @description Seconds */
                "retry-after"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        /** @description The time of the report; default now. A date is the start of that day in the time zone of the policy */
        as_of: string;
        /** @description restated: everything that is known now; as_closed: if the report ends in a closed month, what was known when the month was closed */
        basis: "restated" | "as_closed";
        /** @description Only items with this billing interval, as named in the breakdown */
        billing_interval: string;
        /** @description Only accounts with this channel */
        channel: string;
        /** @description Only accounts of this country, as named in the breakdown */
        country: string;
        /** @description The currency of the report: an ISO 4217 code in upper or lower case. `reporting`: all currencies, converted to `reporting_currency` of the policy. */
        currency: string;
        /** @description next_cursor of the previous page */
        cursor: string;
        /** @description Whether the last bucket ends at the minute of `until`. Use it to compare a past period with the current, incomplete period */
        cut: boolean;
        /** @description Exact event type */
        event_type: string;
        /** @description The first bucket contains this time; default: twelve months, including the current one */
        from: string;
        /** @description Also list deleted records, with deleted: true */
        include_deleted: boolean;
        /** @description Only items with this billing interval, as named in the breakdown */
        interval: string;
        /** @description Number of rows; values above 100 are treated as 100 */
        limit: number;
        /** @description By the last change */
        order: "oldest" | "newest";
        /** @description Rows per page; larger values are reduced to 100 */
        page_size: number;
        /** @description Only items of this plan, as named in the breakdown */
        plan: string;
        /** @description Only items of plans in this group of the policy */
        plan_group: string;
        /** @description `wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it. */
        prefer: string;
        /** @description Inclusive lower bound of occurred_at */
        since: string;
        /** @description Only accounts with this acquisition source */
        source: string;
        /** @description Only subscriptions with this status */
        status: string;
        /** @description The last bucket contains this time, at the latest as_of; default: as_of. A date without a time includes that day */
        to: string;
        /** @description Inclusive upper bound of occurred_at. A date without a time includes that day */
        until: string;
        /** @description Inclusive lower bound of updatedAt */
        updated_since: string;
        /** @description A repeated key returns 200 with duplicate: true, and the change is not applied again. */
        "x-idempotency-key": string;
    };
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
