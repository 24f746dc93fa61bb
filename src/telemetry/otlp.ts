// Loaded only if the standard variables enable traces (tracing.ts): loading takes 150 ms.
import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'

/** Attributes of spans: ids and counts, never request data or credentials. */
export type Attributes = Record<string, string | number>

/** An operation that is reported to the collector. */
export type Span = {
  /** W3C traceparent, to continue the trace elsewhere. */
  traceparent: string
  set(attributes: Attributes): void
  end(failure?: unknown): void
}

type SpanOptions = {
  kind: 'server' | 'producer' | 'consumer' | 'internal'
  parent?: Span | string | null
  /** Traceparents of other traces that this span continues. */
  links?: string[]
  attributes?: Attributes
}

/** The part of the OpenTelemetry SDK that Kontor uses. */
export type Tracer = { start(name: string, options: SpanOptions): Span; close(): Promise<void> }

const KINDS = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
}

// A collector that does not answer delays a stop by no more than this.
const CLOSE_TIMEOUT_MS = 3_000

/** Sends spans over OTLP/HTTP. The SDK reads endpoint, headers, timeouts and batch sizes from OTEL_*. */
export function openTracer(env: NodeJS.ProcessEnv, version: string): Tracer {
  const provider = new TracerProvider({
    resource: resourceFromAttributes(readResource(env, version)),
    sampler: readSampler(env),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  const tracer = provider.getTracer('kontor', version)
  return {
    start(name, { kind, parent, links, attributes }: SpanOptions): Span {
      const span = tracer.startSpan(
        name,
        { kind: KINDS[kind], attributes: attributes ?? {}, links: (links ?? []).flatMap(toLinks) },
        parentContext(parent ?? null),
      )
      const { traceId, spanId, traceFlags } = span.spanContext()
      return {
        traceparent: `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`,
        set: facts => void span.setAttributes(facts),
        end(failure) {
          // Error messages may quote request data; the name is enough to find the error in the log.
          if (failure !== undefined)
            span.setStatus({ code: SpanStatusCode.ERROR, message: (failure as Error)?.name ?? 'Error' })
          span.end()
        },
      }
    },
    async close() {
      const late = new Promise<void>(resolve => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref())
      await Promise.race([provider.shutdown().catch(() => undefined), late])
    },
  }
}

const PARENT = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

/** Null for an invalid traceparent, which is ignored. */
function parseSpanContext(traceparent: string): SpanContext | null {
  const [, traceId, spanId, flags] = PARENT.exec(traceparent) ?? []
  if (!traceId || /^0+$/.test(traceId) || /^0+$/.test(spanId!)) return null
  return { traceId, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16), isRemote: true }
}

function parentContext(parent: Span | string | null): Context {
  const spanContext = parent && parseSpanContext(typeof parent === 'string' ? parent : parent.traceparent)
  return spanContext ? trace.setSpanContext(ROOT_CONTEXT, spanContext) : ROOT_CONTEXT
}

function toLinks(traceparent: string): Link[] {
  const spanContext = parseSpanContext(traceparent)
  return spanContext ? [{ context: spanContext }] : []
}

function readResource(env: NodeJS.ProcessEnv, version: string): Record<string, string> {
  const given = (env.OTEL_RESOURCE_ATTRIBUTES ?? '').split(',').flatMap(pair => {
    const [name, value] = pair.split('=').map(side => side.trim())
    return name && value ? [[name, decoded(value)]] : []
  })
  const { OTEL_SERVICE_NAME: name } = env
  return {
    ...{ 'service.name': 'kontor', 'service.version': version },
    ...Object.fromEntries(given),
    ...(name && { 'service.name': name }),
  }
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** OTEL_TRACES_SAMPLER. Default: the sender's decision, and all requests without one. */
function readSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: arg }: NodeJS.ProcessEnv): Sampler {
  const given = Number(arg ?? 1)
  const ratio = new TraceIdRatioBasedSampler(given >= 0 && given <= 1 ? given : 1)
  const roots: Record<string, Sampler> = {
    always_on: new AlwaysOnSampler(),
    always_off: new AlwaysOffSampler(),
    traceidratio: ratio,
  }
  const own = roots[name ?? '']
  if (own) return own
  const root = roots[(name ?? '').replace(/^parentbased_/, '')] ?? new AlwaysOnSampler()
  return new ParentBasedSampler({ root })
}
