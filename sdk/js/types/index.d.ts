export { Kontor, type KontorOptions } from './client.ts';
export { KontorError } from './error.ts';
export type { BatchItemResult } from './records.ts';
export type * from './types.ts';
