import type { EventStorage } from './types.ts';
/**
 * Keeps the queue of a Node program in a file: `new Kontor({ …, storage: fileStorage('events.ndjson') })`. Use one file per process. Each
 * line is an event, or the ids of events that were sent.
 */
export declare function fileStorage(path: string): EventStorage;
