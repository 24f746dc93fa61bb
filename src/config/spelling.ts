/** The known name closest to what the user typed, if one is close enough. */
export function nearest(typed: string, known: readonly string[]): string | undefined {
  const tolerance = Math.max(1, Math.floor(typed.length / 3))
  return known
    .map(name => ({ name, distance: distance(typed.toLowerCase(), name.toLowerCase()) }))
    .filter(candidate => candidate.distance <= tolerance)
    .sort((a, b) => a.distance - b.distance)[0]?.name
}

/** The number of letters to insert, delete, replace or swap with the next one. */
function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      row[j] = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, rows[i - 2]![j - 2]! + 1)
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
