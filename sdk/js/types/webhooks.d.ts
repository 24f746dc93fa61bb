/** The raw body as sent or received, never parsed and serialized again. */
export type WebhookBody = string | Uint8Array | ArrayBuffer;
export type WebhookHeaders = {
    get(name: string): string | null;
} | Readonly<Record<string, string | readonly string[] | undefined>>;
/** The value of x-service-signature for a request to Kontor. `timestamp` (default now): a Date, or Unix seconds. */
export declare function signWebhook(request: {
    secret: string;
    body: WebhookBody;
    timestamp?: Date | number;
}): Promise<string>;
/**
 * Whether a request was signed with the secret (or one of several, during a rotation) and its timestamp is within `toleranceS`
 * (default 300) of now. Supports Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`), which Kontor sends, and
 * `t=…,v1=…` in x-service-signature.
 */
export declare function verifyWebhook(request: {
    secret: string | readonly string[];
    body: WebhookBody;
    headers: WebhookHeaders;
    toleranceS?: number;
    /** The header with `t=…,v1=…`. Default: x-service-signature. */
    signatureHeader?: string;
}): Promise<boolean>;
