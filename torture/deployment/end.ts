const ends: (() => void)[] = []

/** Runs when this process exits for any reason, so that no child process outlives it. */
export function endWithUs(end: () => void): void {
  if (ends.length === 0) {
    process.on('exit', endAll)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))
  }
  ends.push(end)
}

function endAll(): void {
  for (const end of ends.splice(0)) {
    try {
      end()
    } catch {
      // it has already exited
    }
  }
}
