import type { FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** Bytes of its body that this process holds for it. */
    heldBytes: number
    /** Its credential was checked. Until then its body counts against the small allowance of strangers. */
    isAuthenticated: boolean
    /** For a handler that found the credential in the body. */
    markAuthenticated(): void
  }
}

/**
 * The bodies of all requests that have not been answered, in bytes: whatever a request waits for, it is counted. What
 * strangers send has a share of its own. Where a share is full, the body that has been arriving for longest makes room:
 * a tracking key is public, and whoever holds bodies back on purpose is to hold up nobody else.
 */
export type BodiesInFlight = {
  /** Counts more of a request's body; false: there is no room for it. */
  hold(request: FastifyRequest, bytes: number): boolean
  /** Its body is not yet whole; `evict` ends it. */
  arriving(request: FastifyRequest, evict: () => void): void
  arrived(request: FastifyRequest): void
  /** Its credential stood in its body, and is good. */
  markAuthenticated(request: FastifyRequest): void
  /** It is answered, or its body was thrown away. */
  release(request: FastifyRequest): void
}

type Share = { maxBytes: number; bytes: number; arriving: Map<FastifyRequest, () => void> }

/** What strangers share: of 64 MiB, eight. Bodies with their key inside are small. */
const STRANGERS_SHARE = 1 / 8
// A whole batch, whatever the setting.
const LEAST_FOR_STRANGERS = 2_097_152

export function openBodiesInFlight({
  maxBytes,
  onRefused,
}: {
  maxBytes: number
  onRefused(): void
}): BodiesInFlight {
  const known: Share = { maxBytes, bytes: 0, arriving: new Map() }
  const strangers: Share = {
    maxBytes: Math.max(LEAST_FOR_STRANGERS, maxBytes * STRANGERS_SHARE),
    bytes: 0,
    arriving: new Map(),
  }
  const shareOf = (request: FastifyRequest) => (request.isAuthenticated ? known : strangers)

  function makeRoom(share: Share, request: FastifyRequest, bytes: number): void {
    for (const [other, evict] of share.arriving) {
      if (share.bytes + bytes <= share.maxBytes) return
      if (other === request) continue
      share.arriving.delete(other)
      onRefused()
      evict()
    }
  }

  return {
    hold(request, bytes) {
      const share = shareOf(request)
      if (share.bytes + bytes > share.maxBytes) makeRoom(share, request, bytes)
      // One body always fits, whatever the setting.
      const fits = share.bytes + bytes <= share.maxBytes || share.bytes === request.heldBytes
      if (fits) {
        share.bytes += bytes
        request.heldBytes += bytes
      } else onRefused()
      return fits
    },
    arriving: (request, evict) => shareOf(request).arriving.set(request, evict),
    arrived: request => shareOf(request).arriving.delete(request),
    markAuthenticated(request) {
      if (request.isAuthenticated) return
      strangers.bytes -= request.heldBytes
      known.bytes += request.heldBytes
      request.isAuthenticated = true
    },
    release(request) {
      shareOf(request).bytes -= request.heldBytes
      request.heldBytes = 0
    },
  }
}
