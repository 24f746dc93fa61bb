/** The entry point for the console. */
export { deliver, type Target } from './deliver.ts'
export { shopYear } from './shop.ts'
export { createYear, findEnd, sourceName } from './year.ts'
