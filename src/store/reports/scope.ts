/** Whose report it is, in which currency, and as of when. */
export type Scope = { tenantId: number; currency: string; asOf: Date }
