import type { FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** Bytes of its body that this process holds. */
    heldBytes: number
    /** Its credential is valid. Until then its body counts against the small share of unauthenticated requests. */
    isAuthenticated: boolean
    /** For a handler that found the credential in the body. */
    markAuthenticated(): void
  }
}

/**
 * Bounds the bytes of all request bodies from their arrival until the response. Unauthenticated requests have a share of
 * their own. When a share is full, the body that has been arriving longest is evicted: a tracking key is public, and a
 * client that sends slowly on purpose must not block the others.
 */
export type BodiesInFlight = {
  /** Counts more bytes of a request's body; false: they do not fit. */
  hold(request: FastifyRequest, bytes: number): boolean
  /** Its body is still incomplete; `evict` ends the request. */
  arriving(request: FastifyRequest, evict: () => void): void
  arrived(request: FastifyRequest): void
  /** Its body contained a valid credential. */
  markAuthenticated(request: FastifyRequest): void
  /** It was answered, or its body was discarded. */
  release(request: FastifyRequest): void
}

type Share = { maxBytes: number; bytes: number; arriving: Map<FastifyRequest, () => void> }

// 8 of 64 MiB: bodies that contain their key are small.
const UNAUTHENTICATED_SHARE = 1 / 8
// One whole batch fits, whatever the setting.
const MIN_UNAUTHENTICATED_BYTES = 2_097_152

export function openBodiesInFlight({ maxBytes, onRejected }: { maxBytes: number; onRejected(): void }): BodiesInFlight {
  const authenticated: Share = { maxBytes, bytes: 0, arriving: new Map() }
  const unauthenticated: Share = {
    maxBytes: Math.max(MIN_UNAUTHENTICATED_BYTES, maxBytes * UNAUTHENTICATED_SHARE),
    bytes: 0,
    arriving: new Map(),
  }
  const findShare = (request: FastifyRequest) => (request.isAuthenticated ? authenticated : unauthenticated)

  function evictOthers(share: Share, request: FastifyRequest, bytes: number): void {
    for (const [other, evict] of share.arriving) {
      if (share.bytes + bytes <= share.maxBytes) return
      if (other === request) continue
      share.arriving.delete(other)
      onRejected()
      evict()
    }
  }

  return {
    hold(request, bytes) {
      const share = findShare(request)
      if (share.bytes + bytes > share.maxBytes) evictOthers(share, request, bytes)
      // A single body is always admitted, whatever the setting.
      const fits = share.bytes + bytes <= share.maxBytes || share.bytes === request.heldBytes
      if (fits) {
        share.bytes += bytes
        request.heldBytes += bytes
      } else onRejected()
      return fits
    },
    arriving: (request, evict) => findShare(request).arriving.set(request, evict),
    arrived: request => findShare(request).arriving.delete(request),
    markAuthenticated(request) {
      if (request.isAuthenticated) return
      unauthenticated.bytes -= request.heldBytes
      authenticated.bytes += request.heldBytes
      request.isAuthenticated = true
    },
    release(request) {
      findShare(request).bytes -= request.heldBytes
      request.heldBytes = 0
    },
  }
}
