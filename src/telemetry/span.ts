/** Attributes of spans: which, how many, whose. Never what was sent, and no credentials. */
export type Attributes = Record<string, string | number>

/** A stretch of work that is told to a collector. */
export type Span = {
  /** As W3C's traceparent, for whoever goes on with it elsewhere. */
  traceparent: string
  set(attributes: Attributes): void
  end(failure?: unknown): void
}

export type SpanOptions = {
  kind: 'server' | 'producer' | 'consumer' | 'internal'
  parent?: Span | string | null
  /** Other traces that it goes on with. */
  links?: string[]
  attributes?: Attributes
}

/** What the SDK does for us (otlp.ts), behind what we ask of it. */
export type Tracer = { start(name: string, options: SpanOptions): Span; close(): Promise<void> }
