import type { VNode } from 'preact'
import { html } from '../html.ts'

/** Names and networks that nobody outside knows; a name without a dot is one of them. */
const LOCAL =
  /^(127\.|10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|\[)|^[^.]+$|\.(localhost|local|internal|lan)$/

/** Says so where the address that is offered to a sender out there leads nowhere. */
export function LocalAddressNote({ sender }: { sender: string }): VNode | null {
  if (!LOCAL.test(location.hostname)) return null
  return html`
    <p class="notice bad">
      ${sender} cannot reach ${location.host}, because that address is known only on this machine or in its network. Use
      the public address of this server (its domain, or a tunnel to it) with the same path. Until then, you can use “Send
      test event” on the page of the source.
    </p>
  `
}
