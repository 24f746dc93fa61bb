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
      ${sender} cannot reach ${location.host}: that is known on this machine or in its network only. Give it the address
      that this server has on the internet (its domain, or a tunnel to it), followed by the same path. Until then “Send a
      test event” on the source's page shows what would happen.
    </p>
  `
}
