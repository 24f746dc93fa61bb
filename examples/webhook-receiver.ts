// Receives webhooks from Kontor. `kontor destination create --tenant default --url https://…` prints WEBHOOK_SECRET.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { verifyWebhook } from '@kontor/sdk/webhooks'

const secret = process.env.WEBHOOK_SECRET ?? ''
const port = Number(process.env.PORT ?? 3000)

// If a response is lost, Kontor sends the message again with the same id. In production, store the ids in your database.
const seen = new Set<string>()

const server = createServer(async (request, response) => {
  const body = await text(request) // the raw body, because the signature covers every byte
  const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
  if (!(await verifyWebhook({ secret, body, headers }))) return void response.writeHead(401).end()
  const { id, type, data } = JSON.parse(body) as { id: string; type: string; data: unknown }
  response.writeHead(204).end() // respond before the work: Kontor waits 15 seconds
  if (seen.has(id)) return
  seen.add(id)
  console.log(type, JSON.stringify(data))
})
server.listen(port, () => {
  console.error('listening', JSON.stringify(server.address()))
})
process.on('SIGTERM', () => server.close())
