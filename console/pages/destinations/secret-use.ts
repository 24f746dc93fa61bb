import type { VNode } from 'preact'
import { Copyable } from '../../components/copyable.ts'
import { h, html } from '../../html.ts'

/** A secret, and how a receiver checks with it. */
export function SecretUse({ secret }: { secret: string }): VNode {
  return html`
    ${h(Copyable, { text: secret, label: 'Copy the secret' })}
    <p>Verify requests in the receiver:</p>
    ${h(Copyable, { text: receiverCode(secret), label: 'Copy the code' })}
  `
}

function receiverCode(secret: string): string {
  return [
    `import { createServer } from 'node:http'`,
    `import { verifyWebhook } from '@kontor/sdk/webhooks'`,
    '',
    `const secret = ${JSON.stringify(secret)}`,
    '',
    'createServer(async (request, response) => {',
    '  const chunks = []',
    '  for await (const chunk of request) chunks.push(chunk)',
    '  const body = Buffer.concat(chunks)',
    '  const isGenuine = await verifyWebhook({ secret, body, headers: request.headers })',
    '  response.writeHead(isGenuine ? 204 : 401).end()',
    `  if (isGenuine) console.log(request.headers['webhook-id'], JSON.parse(body))`,
    '}).listen(3000)',
  ].join('\n')
}
