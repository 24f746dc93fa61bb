import type { EventStorage } from './types.ts';
/**
 * Keeps the queue of a page in the browser's IndexedDB: `new Kontor({ …, storage: indexedDbStorage() })`. The pages of an origin share it;
 * Kontor recognizes events that two of them send by their ids.
 */
export declare function indexedDbStorage(name?: string): EventStorage;
