import type { Time } from './types.ts';
/** The part of `fetch` that the client uses. */
export type FetchOption = {
    fetch?(url: string, init: object): Promise<FetchAnswer>;
};
export type FetchAnswer = {
    status: number;
    headers: {
        get(name: string): string | null;
    };
    text(): Promise<string>;
};
export type RetryOptions = {
    /** Number of retries after a network failure, 408, 429, 5xx or an unreadable answer. Default 5; 0 disables retries. */
    maxRetries?: number;
    /** First pause between attempts. It doubles each time, up to 8 s. Default 250. */
    retryDelayMs?: number;
    /** Timeout of one attempt. Default 30,000. */
    timeoutMs?: number;
};
export type Query = Record<string, Time | number | boolean | undefined>;
export type Call = {
    method: 'GET' | 'POST' | 'DELETE';
    url: string;
    headers?: Record<string, string>;
    /** A function is called for each attempt, because the body contains the time of sending. */
    body?: string | (() => string);
    keepalive?: boolean;
    timeoutMs?: number;
};
export type Send = <Answer>(call: Call) => Promise<Answer>;
/** Creates a function that sends requests and retries temporary failures. */
export declare function openSend(options: FetchOption & RetryOptions): Send;
export declare function queryText(query: Query): string;
/** 160 random bits. randomUUID is not available on http pages. */
export declare function randomId(): string;
