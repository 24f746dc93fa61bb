import type { IncomingHttpHeaders } from 'node:http'

export type CookieOptions = {
  name: string
  /** Letters, digits and -._ only. */
  value: string
  maxAgeS: number
  isSecure: boolean
  /** Strict: only what this site's own pages ask for carries it; Lax: also whoever is led here from elsewhere. */
  sameSite: 'Strict' | 'Lax'
}

/** For a `set-cookie` header. No script can read it. */
export function cookie({ name, value, maxAgeS, isSecure, sameSite }: CookieOptions): string {
  const secure = isSecure ? '; Secure' : ''
  return `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=${sameSite}${secure}`
}

/** The value of a cookie; the first, where there are several. */
export function cookieIn(headers: IncomingHttpHeaders, name: string): string | null {
  for (const part of headers.cookie?.split(';') ?? []) {
    const text = part.trim()
    if (text.startsWith(`${name}=`)) return text.slice(name.length + 1)
  }
  return null
}
