import { AsyncLocalStorage } from 'node:async_hooks'
import type { Entry, EntryKind } from '../domain/entries/entry.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import type { Attributes, Span, Tracer } from './otlp.ts'

type Append = { entry: Entry }
type Accept<Entries, Appended> = (entries: Entries[]) => Promise<Appended[]>

export type Tracing = {
  /** Starts the span of a request. `traceparent` is its header. */
  request(method: string, route: string, traceparent: string | undefined): Span
  /** Spans that `run` starts belong to the request. */
  within(span: Span, run: () => void): void
  /** Appends to the log are part of their request. Their entries carry the trace to the workers. */
  accept<A extends Append, Appended>(accept: Accept<A, Appended>): Accept<A, Appended>
  batch(entries: Entry[]): Batch
  close(): Promise<void>
}

/** One transaction of a worker. */
type Batch = {
  effects<T>(kind: EntryKind, count: number, run: () => Promise<T>): Promise<T>
  end(failure?: unknown): void
}

/** Whether the standard variables enable traces. Otherwise OpenTelemetry is not loaded. */
export function wantsTraces(env: NodeJS.ProcessEnv): boolean {
  if (/^true$/i.test(env.OTEL_SDK_DISABLED ?? '')) return false
  const exporters = env.OTEL_TRACES_EXPORTER?.split(',').map(name => name.trim())
  if (exporters) return exporters.includes('otlp')
  return Boolean(env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT)
}

export async function openTracing(env: NodeJS.ProcessEnv, version: string): Promise<Tracing | null> {
  if (!wantsTraces(env)) return null
  const { openTracer } = await import('./otlp.ts')
  return createTracing(openTracer(env, version))
}

// Without the limit, the span of a batch of 2,000 entries would have 100 kB.
const MAX_LINKS = 64

function createTracing(tracer: Tracer): Tracing {
  const current = new AsyncLocalStorage<Span>()
  return {
    request: (method, route, traceparent) =>
      tracer.start(`${method} ${route}`, {
        ...{ kind: 'server', parent: traceparent ?? null },
        attributes: { 'http.request.method': method, 'http.route': route },
      }),
    within: (span, run) => current.run(span, run),
    accept: accept => async entries => {
      const span = tracer.start('log append', {
        ...{ kind: 'producer', parent: current.getStore() ?? null },
        attributes: buildAttributes(entries.map(({ entry }) => entry)),
      })
      try {
        const appended = await accept(entries.map(append => addTraceparent(append, span.traceparent)))
        span.end()
        return appended
      } catch (error) {
        span.end(error)
        throw error
      }
    },
    batch(entries) {
      const links = new Set(entries.flatMap(entry => readTraceparent(entry) ?? []))
      const span = tracer.start('process batch', {
        ...{ kind: 'consumer', links: [...links].slice(0, MAX_LINKS), attributes: buildAttributes(entries) },
      })
      return {
        async effects(kind, count, run) {
          const attributes = { 'kontor.kind': kind, 'kontor.entries': count }
          const own = tracer.start(`effects ${kind}`, { kind: 'internal', parent: span, attributes })
          try {
            const result = await run()
            own.end()
            return result
          } catch (error) {
            own.end(error)
            throw error
          }
        },
        end: span.end,
      }
    },
    close: tracer.close,
  }
}

/** The number and kinds of the entries, and their tenant if all have the same. */
function buildAttributes(entries: Entry[]): Attributes {
  const tenants = new Set(entries.map(({ tenantId }) => tenantId))
  const kinds = new Set(entries.map(({ kind }) => kind))
  const [tenant] = tenants
  return {
    'kontor.entries': entries.length,
    'kontor.kind': [...kinds].sort().join(','),
    ...(tenants.size === 1 && { 'kontor.tenant': publicTenantId(tenant!) }),
  }
}

/** The context is a JSON object that only Kontor writes. The traceparent becomes one of its fields. */
function addTraceparent<A extends Append>(append: A, traceparent: string): A {
  const { entry } = append
  const comma = entry.context === '{}' ? '' : ','
  const context = `${entry.context.slice(0, -1)}${comma}"traceparent":"${traceparent}"}`
  return { ...append, entry: { ...entry, context } }
}

function readTraceparent({ context }: Entry): string | null {
  return /"traceparent":"(00-[\da-f]{32}-[\da-f]{16}-[\da-f]{2})"/.exec(context)?.[1] ?? null
}
