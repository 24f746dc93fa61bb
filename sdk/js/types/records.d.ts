import { KontorError } from './error.ts';
import { type Query } from './http.ts';
import type { BatchRow, ListedRecord, RecordInput, RecordListOptions, RecordPath, RecordTarget, StoredRecord, WriteOptions, WriteResult } from './types.ts';
/** The result of one item of upsertMany. `index` counts over all batches. */
export type BatchItemResult = (Pick<WriteResult, 'status' | 'warnings' | 'payloadMismatch'> & Required<Pick<BatchRow, 'index' | 'duplicate' | 'operationId'>> & {
    accepted: true;
    id: string;
}) | {
    accepted: false;
    index: number;
    id: string;
    errors: NonNullable<BatchRow['errors']>;
    /** Set if the whole batch failed. */
    error?: KontorError;
};
/** Calls of the data API with the private key. */
export type Api = {
    get<Answer>(path: string, query?: Query): Promise<Answer>;
    /** null if there is none. */
    find<Answer>(path: string, query?: Query): Promise<Answer | null>;
    write<Answer>(method: 'POST' | 'DELETE', path: string, body: string, options: {
        waitS?: number | undefined;
    }): Promise<Answer>;
};
export type Records = ReturnType<typeof openRecords>;
export declare function openRecords(api: Api, path: RecordPath): {
    /** Creates or replaces a record. Resolves when the change is durable. */
    upsert(record: RecordInput, { idempotencyKey, waitS }?: WriteOptions): Promise<WriteResult>;
    /**
     * Creates or replaces many records, up to 1,000 per request. Always yields one result per item, in order. If a whole batch
     * fails after all retries, each of its items has the error, and the next batch is sent. Throws only errors of `records`.
     */
    upsertMany(records: Iterable<RecordInput> | AsyncIterable<RecordInput>, { waitS }?: Pick<WriteOptions, "waitS">): AsyncGenerator<BatchItemResult, void, undefined>;
    /** By `id` or `externalId`; products also by `data.sku` or `data.code`. Deleting a missing record is not an error. */
    delete(target: RecordTarget, { idempotencyKey, waitS }?: WriteOptions): Promise<WriteResult>;
    /** null if there is none. Products are found by `data.sku`, or by `id` if no product has that SKU. */
    get<Data = Record<string, unknown>>(id: string): Promise<StoredRecord<Data> | null>;
    /** In the order of their last change. */
    list({ updatedSince, includeDeleted, limit, }?: RecordListOptions): AsyncGenerator<ListedRecord, void, undefined>;
};
/** The rows of a list. Pages are fetched as they are read. */
export declare function rows<Row>(api: Api, path: string, query: Query, limit?: number): AsyncGenerator<Row, void, undefined>;
/** Encodes an id for a path. `.` and `..` are impossible, because URL parsers resolve them. */
export declare function segment(id: string): string;
export declare function byteLength(text: string): number;
