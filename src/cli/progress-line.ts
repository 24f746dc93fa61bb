/** A progress line on a terminal, overwritten on each update: count, rate and remaining time. */
export function openProgressLine(what: string) {
  const isTerminal = process.stderr.isTTY === true
  const startedAt = performance.now()
  let shownAt = Number.NEGATIVE_INFINITY
  return {
    show(count: number, share: number | null): void {
      const now = performance.now()
      if (!isTerminal || now - shownAt < 200) return
      shownAt = now
      const seconds = (now - startedAt) / 1000
      const rate = Math.round(count / Math.max(seconds, 0.001))
      const left =
        share && share > 0.001
          ? `, ${Math.round(100 * share)} %, ${duration((seconds / share) * (1 - share))} left`
          : ''
      process.stderr.write(
        `\r\x1b[2K${count.toLocaleString('en')} ${what}, ${rate.toLocaleString('en')}/s${left}`,
      )
    },
    end(): void {
      if (isTerminal && shownAt > 0) process.stderr.write('\r\x1b[2K')
    },
  }
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  return seconds < 5_400 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`
}
