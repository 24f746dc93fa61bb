import type { VNode } from 'preact'
import type { Credential } from '../api/types.ts'
import { h, html } from '../html.ts'
import { Time } from './time.ts'

/** How tokens or secrets end, and until when those that were replaced are good. */
export function Credentials({ credentials }: { credentials: Credential[] }): VNode {
  return html`
    <span>
      ${credentials.map(
        ({ hint, expires_at }, index) => html`
          ${index > 0 && ', '}<code>${hint}</code>${expires_at && html` until ${h(Time, { at: expires_at })}`}
        `,
      )}
    </span>
  `
}
