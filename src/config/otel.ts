/** The variables of OpenTelemetry, which are its own: the SDK reads most of them itself. */
export function otelVariables(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('OTEL_')))
}
