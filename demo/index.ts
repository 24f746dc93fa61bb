/** A made-up year, and the way to send it: for the command line, tests and the console. */
export { deliver, type Target } from './deliver.ts'
export { shopYear } from './shop.ts'
export { yearOf } from './year.ts'
