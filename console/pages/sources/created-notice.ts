import type { VNode } from 'preact'
import type { CreatedSource } from '../../api/types.ts'
import { Copyable } from '../../components/copyable.ts'
import { LocalAddressNote } from '../../components/local-address.ts'
import { ShownOnce } from '../../components/once.ts'
import { Facts } from '../../components/page.ts'
import { words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { cdpCommand, signedWebhookCommand, webhookCommand } from '../../samples.ts'

export function CreatedNotice({ source }: { source: CreatedSource }): VNode {
  const { id, name, path, preset, token, signing_secret: secret } = source
  return h(
    ShownOnce,
    { title: `Source ${name} created` },
    html`<p>The token is shown only once. Save it now.</p>`,
    h(Facts, {
      facts: [
        ['Address', h(Copyable, { text: location.origin + path, label: 'Copy the address' })],
        ['Token', h(Copyable, { text: token, label: 'Copy the token' })],
        secret && ['Signing secret', h(Copyable, { text: secret, label: 'Copy the signing secret' })],
      ],
    }),
    preset && h(LocalAddressNote, { sender: words(preset) }),
    html`<p>${preset ? `Enter the address in ${words(preset)}, or send a test event:` : 'Send a test event:'}</p>`,
    h(Copyable, { text: commandFor(source), label: 'Copy the command' }),
    html`<p><a href=${link('source', { id })}>Open the source</a></p>`,
  )
}

/** A sender with a preset signs in its own way, so its sample is sent from here. */
function commandFor({ id, type, preset, path, token, signing_secret: secret }: CreatedSource): string {
  if (preset) return `npm run kontor -- source test ${id}`
  if (secret) return signedWebhookCommand(path, token, secret)
  return type === 'cdp' ? cdpCommand(path, token) : webhookCommand(path, token)
}
