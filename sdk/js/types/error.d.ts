import type { Problem, QueuedCall } from './types.ts';
type Facts = {
    message: string;
    status?: number;
    code: string;
    requestId?: string | null;
    errors?: Problem['errors'];
    retryAfterS?: number | null;
    events?: QueuedCall[];
    cause?: unknown;
};
/** Why a call failed. It is thrown after all retries. */
export declare class KontorError extends Error {
    name: string;
    /** The HTTP status; 0 if there was no response. */
    readonly status: number;
    /**
     * Stable error code: Kontor's code, or network_error, timeout, invalid_answer, http_error, queue_full, invalid_event, events_rejected,
     * storage_failed, closed.
     */
    readonly code: string;
    /** Include it when you contact the operator about this call. */
    readonly requestId: string | null;
    /** All validation errors: a JSON pointer into the body (or `/` and a parameter's name), and a message. */
    readonly errors: NonNullable<Problem['errors']>;
    /** How many seconds to wait before the next attempt, if the server sent it. */
    readonly retryAfterS: number | null;
    /** For track(): the events that were not delivered. */
    readonly events: QueuedCall[];
    constructor({ message, status, code, requestId, errors, retryAfterS, events, cause }: Facts);
}
/** Whether the same call may succeed later. */
export declare function isTransient({ status, code }: KontorError): boolean;
export {};
