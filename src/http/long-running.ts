/** Bounds what goes on for long, of a tenant and in all: a tenant that has all it may leaves room for the others. */
export type LongRunning = {
  /** Returns how it ends, to be called once; null: there is no room. */
  begin(tenantId: number): (() => void) | null
}

export function limitLongRunning({ ofTenant, inAll }: { ofTenant: number; inAll: number }): LongRunning {
  const counts = new Map<number, number>()
  let total = 0
  return {
    begin(tenantId) {
      const count = counts.get(tenantId) ?? 0
      if (total >= inAll || count >= ofTenant) return null
      counts.set(tenantId, count + 1)
      total++
      return () => {
        const left = counts.get(tenantId)! - 1
        if (left === 0) counts.delete(tenantId)
        else counts.set(tenantId, left)
        total--
      }
    },
  }
}
