import { KontorError } from './error.ts';
import { type Send } from './http.ts';
import type { EventStorage, QueuedCall } from './types.ts';
export type QueueOptions = {
    /** How long an event may wait for a batch. Default 1,000. */
    flushIntervalMs?: number;
    /** Maximum number of queued events. Further events are rejected. Default 10,000 (and 16 MiB). */
    maxQueued?: number;
    /**
     * Called for failures in the background. `error.events` are lost; it is empty while events only wait, because Kontor is
     * unreachable. Default: console.error; for a full queue, it prints after 1, 10, 100 … rejected events.
     */
    onError?(error: KontorError): void;
    /** Keeps queued events when the program ends. Default: they are kept in memory only. */
    storage?: EventStorage | undefined;
};
export type CallKind = 'track' | 'identify' | 'group' | 'alias' | 'page';
export type Queue = ReturnType<typeof openQueue>;
/** Sends events in order, one batch at a time. An event leaves the queue when Kontor has responded. */
export declare function openQueue(send: Send, target: {
    url: string;
    key: string;
}, options: QueueOptions): {
    add: (kind: CallKind, call: QueuedCall) => boolean;
    flush: () => Promise<void>;
    close: () => Promise<void>;
};
