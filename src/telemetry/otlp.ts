// Loaded only where the standard variables ask for traces (tracing.ts): it takes 20 MB of disk and 150 ms.
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
import type { Span, SpanOptions, Tracer } from './span.ts'

const KINDS = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
}

// A collector that does not answer holds no stop up for longer.
const CLOSE_WITHIN_MS = 3_000

/** Sends spans over OTLP/HTTP; endpoint, headers, time limits and batches are read from OTEL_* by the SDK. */
export function openTracer(env: NodeJS.ProcessEnv, version: string): Tracer {
  const provider = new TracerProvider({
    resource: resourceFromAttributes(resourceOf(env, version)),
    sampler: samplerOf(env),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  const tracer = provider.getTracer('kontor', version)
  return {
    start(name, { kind, parent, links, attributes }: SpanOptions): Span {
      const span = tracer.startSpan(
        name,
        { kind: KINDS[kind], attributes: attributes ?? {}, links: (links ?? []).flatMap(linkOf) },
        contextOf(parent ?? null),
      )
      const { traceId, spanId, traceFlags } = span.spanContext()
      return {
        traceparent: `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`,
        set: facts => void span.setAttributes(facts),
        end(failure) {
          // Messages of errors may quote what was sent: the name is enough to look for it in the log.
          if (failure !== undefined)
            span.setStatus({ code: SpanStatusCode.ERROR, message: (failure as Error)?.name ?? 'Error' })
          span.end()
        },
      }
    },
    async close() {
      const late = new Promise<void>(resolve => setTimeout(resolve, CLOSE_WITHIN_MS).unref())
      await Promise.race([provider.shutdown().catch(() => undefined), late])
    },
  }
}

const PARENT = /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/

/** What cannot be read as a traceparent is as if it had not been sent. */
function spanContextOf(traceparent: string): SpanContext | null {
  const [, traceId, spanId, flags] = PARENT.exec(traceparent) ?? []
  if (!traceId || /^0+$/.test(traceId) || /^0+$/.test(spanId!)) return null
  return { traceId, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16), isRemote: true }
}

function contextOf(parent: Span | string | null): Context {
  const spanContext = parent && spanContextOf(typeof parent === 'string' ? parent : parent.traceparent)
  return spanContext ? trace.setSpanContext(ROOT_CONTEXT, spanContext) : ROOT_CONTEXT
}

function linkOf(traceparent: string): Link[] {
  const spanContext = spanContextOf(traceparent)
  return spanContext ? [{ context: spanContext }] : []
}

function resourceOf(env: NodeJS.ProcessEnv, version: string): Record<string, string> {
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

/** OTEL_TRACES_SAMPLER, by default what the sender says, and everything of senders that say nothing. */
function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: arg }: NodeJS.ProcessEnv): Sampler {
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
