export { Kontor, type KontorOptions } from './client.ts'
export { KontorError } from './error.ts'
export type * from './types.ts'
