import type { components, paths } from './openapi.ts';
export type Problem = components['schemas']['Problem'];
export type RecordPath = '/v1/products' | '/v1/contacts' | '/v1/orders';
type Json<Content> = Content extends {
    content: {
        'application/json': infer Body;
    };
} ? Body : never;
type Get<Path extends keyof paths> = paths[Path] extends {
    get: {
        parameters: {
            query?: infer Query;
        };
        responses: {
            200: infer Answer;
        };
    };
} ? {
    query: Query;
    body: Json<Answer>;
} : never;
type Rename<Body, Changes> = Omit<Body, keyof Changes> & Changes;
/** A Date, or ISO 8601. */
export type Time = Date | string;
type WriteBody = Json<paths['/v1/products']['post']['requestBody']>;
type DeleteBody = Json<paths['/v1/products']['delete']['requestBody']>;
export type BatchRow = Json<paths['/v1/products/batch']['post']['responses'][202]>['results'][number];
/** `sourceUpdatedAt` defaults to now. */
export type RecordInput = Rename<Omit<WriteBody, 'entityType'>, {
    sourceUpdatedAt?: Time;
    data?: object;
}>;
export type RecordTarget = Rename<Omit<DeleteBody, 'entityType'>, {
    sourceUpdatedAt?: Time;
    data?: object;
}>;
export type WriteOptions = {
    /** Default: a generated key. */
    idempotencyKey?: string;
    /** How many seconds to wait until the change is applied (up to 10). The result then has a `status`. */
    waitS?: number;
};
export type WriteResult = Json<paths['/v1/products']['post']['responses'][202]>;
export type StoredRecord<Data = Record<string, unknown>> = Rename<Get<'/v1/products/{id}'>['body'], {
    data: Data;
}>;
/** In lists that include deleted records, the data of a deleted record is null. */
export type ListedRecord = Get<'/v1/products'>['body']['results'][number];
export type RecordListOptions = {
    updatedSince?: Time;
    includeDeleted?: boolean;
    limit?: number;
};
export type Operation = Get<'/v1/operations/{operationId}'>['body'];
/** An event for track(). `event_id` defaults to a generated id, `occurred_at` to the current time. */
export type TrackedEvent = Rename<Json<paths['/v1/track']['post']['requestBody']>, {
    occurred_at?: Time;
    data?: object;
}>;
/** The person, and the id and time of the call. `event_id` defaults to a generated id, `occurred_at` to the current time. */
type CallContext = {
    visitor?: string | undefined;
    user_id?: string | undefined;
    session_id?: string | undefined;
    event_id?: string | undefined;
    occurred_at?: Time | undefined;
};
export type IdentifyCall = CallContext & {
    traits?: object;
};
export type GroupCall = CallContext & {
    group_id: string;
    traits?: object;
};
export type AliasCall = CallContext & {
    previous_id: string;
    user_id: string;
};
export type PageCall = CallContext & {
    name?: string;
    data?: object;
};
/** What the queue holds: an event, or one of the other calls. */
export type QueuedCall = TrackedEvent | IdentifyCall | GroupCall | AliasCall | PageCall;
/**
 * Keeps queued events outside of the memory, so that they survive the end of the program. `text` is one JSON object. The
 * queue calls a method without waiting for earlier calls; a storage applies the calls in order. See `@kontor/sdk/file` and
 * `@kontor/sdk/indexeddb`.
 */
export type EventStorage = {
    /** The events of earlier programs, oldest first. */
    load(): Promise<StoredEvent[]>;
    add(event: StoredEvent): Promise<void>;
    remove(ids: string[]): Promise<void>;
};
export type StoredEvent = {
    id: string;
    text: string;
};
export type Event = Get<'/v1/events'>['body']['results'][number];
export type Conversion = Get<'/v1/conversions'>['body']['results'][number];
export type EventOutcome = Get<'/v1/events/{id}'>['body'];
export type EventListOptions = {
    event_type?: string;
    /** Inclusive. */
    since?: Time;
    /** Inclusive. */
    until?: Time;
    /** Maximum number of rows over all pages. */
    limit?: number;
};
export type ReportName = 'overview' | 'attention' | 'acquisition' | 'account' | 'movements' | 'retention' | 'history' | 'breakdown' | 'cash' | 'consolidated' | 'exclusions' | 'trials' | 'dunning' | 'cash/facts' | 'revenue' | 'revenue/invoices' | 'forecast' | 'churn-reasons';
type ReportGet<Name extends ReportName> = Get<`/v1/subscriptions/${Name}`>;
export type Report<Name extends ReportName> = ReportGet<Name>['body'];
type TimeField = 'as_of' | 'since' | 'until' | 'from' | 'to' | 'date';
type QueryOf<Query> = {
    currency: string;
} & {
    [Field in Exclude<keyof Query, 'currency' | 'list'>]?: Field extends TimeField ? Time : Query[Field];
};
export type ReportQuery<Name extends ReportName> = QueryOf<ReportGet<Name>['query']>;
/** A row of a list of a report. */
export type ReportRow<Name extends ReportName, List extends keyof Report<Name>> = Report<Name>[List] extends {
    results: (infer Row)[];
} ? Row : Report<Name>[List] extends (infer Row)[] ? Row : never;
export type Books = Get<'/v1/subscriptions/books'>['body'];
export type BooksQuery = Partial<Get<'/v1/subscriptions/books'>['query']>;
export {};
