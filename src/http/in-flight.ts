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
 * strangers send has a share of its own, and of them the one that has been sending for longest makes room.
 */
export type BodiesInFlight = {
  /** Counts more of a request's body; false: there is no room for it. */
  hold(request: FastifyRequest, bytes: number): boolean
  /** A stranger's body is arriving; `evict` ends it. */
  arriving(request: FastifyRequest, evict: () => void): void
  arrived(request: FastifyRequest): void
  /** Its credential stood in its body, and is good. */
  markAuthenticated(request: FastifyRequest): void
  /** It is answered, or its body was thrown away. */
  release(request: FastifyRequest): void
}

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
  const maxOfStrangers = Math.max(LEAST_FOR_STRANGERS, maxBytes * STRANGERS_SHARE)
  const strangersArriving = new Map<FastifyRequest, () => void>()
  let known = 0
  let strangers = 0

  function holdForStranger(request: FastifyRequest, bytes: number): boolean {
    for (const [other, evict] of strangersArriving) {
      if (strangers + bytes <= maxOfStrangers) break
      if (other === request) continue
      strangersArriving.delete(other)
      onRefused()
      evict()
    }
    if (strangers + bytes > maxOfStrangers) return false
    strangers += bytes
    return true
  }

  function holdForKnown(request: FastifyRequest, bytes: number): boolean {
    // One body always fits, whatever the setting.
    if (known + bytes > maxBytes && known > request.heldBytes) return false
    known += bytes
    return true
  }

  return {
    hold(request, bytes) {
      const isHeld = request.isAuthenticated ? holdForKnown(request, bytes) : holdForStranger(request, bytes)
      if (isHeld) request.heldBytes += bytes
      else onRefused()
      return isHeld
    },
    arriving: (request, evict) => strangersArriving.set(request, evict),
    arrived: request => strangersArriving.delete(request),
    markAuthenticated(request) {
      if (request.isAuthenticated) return
      request.isAuthenticated = true
      strangers -= request.heldBytes
      known += request.heldBytes
    },
    release(request) {
      if (request.isAuthenticated) known -= request.heldBytes
      else strangers -= request.heldBytes
      request.heldBytes = 0
    },
  }
}
