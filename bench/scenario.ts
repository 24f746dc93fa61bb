import type { Options } from './measure.ts'

export type Bar = { what: string; value: number; atLeast?: number; atMost?: number }

export type Scenario = (options: Options) => Promise<{ facts: Record<string, unknown>; bars: Bar[] }>
