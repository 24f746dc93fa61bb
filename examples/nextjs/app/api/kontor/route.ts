// Receives webhooks from Kontor in Next.js. The URL of the destination is /api/kontor.
import { verifyWebhook } from '@kontor/sdk/webhooks'

type Message = { id: string; type: string; timestamp: string; data: Record<string, unknown> }

export async function POST(request: Request): Promise<Response> {
  const body = await request.text() // the raw body, because the signature covers every byte
  const secret = process.env.KONTOR_WEBHOOK_SECRET ?? ''
  if (!(await verifyWebhook({ secret, body, headers: request.headers }))) return new Response(null, { status: 401 })

  const message = JSON.parse(body) as Message
  if (message.type === 'movement.churn') console.log('lost', message.data.customer)
  return new Response(null, { status: 204 })
}
