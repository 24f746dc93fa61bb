import { once } from 'node:events'
import { connect } from 'node:net'
import type { Readable } from '../../domain/destinations/markup.ts'

/** The mail server and the sender address of this installation. */
export type MailSettings = {
  server: {
    host: string
    port: number
    user: string | null
    password: string | null
    tls: 'always' | 'starttls' | 'off'
  }
  from: string
}

/** `id`: the same in every attempt, so that mail programs recognize a duplicate. */
type Mail = { id: string; to: string; content: Readable }

/** Sends one e-mail on a new connection. Returns the response of the server; throws if it does not accept the e-mail. */
export async function sendMail(
  { server, from }: MailSettings,
  { id, to, content }: Mail,
  signal: AbortSignal,
): Promise<string> {
  const { host, port, user, password, tls } = server
  // Loaded on first use: most installations send no e-mail.
  const { createTransport } = (await import('nodemailer')).default
  const socket = connect({ host, port, signal })
  // nodemailer reports errors of the connection; one after its end is of no interest.
  socket.on('error', () => {})
  try {
    await once(socket, 'connect', { signal })
    const transport = createTransport({
      ...{ host, port, secure: tls === 'always', requireTLS: tls === 'starttls', ignoreTLS: tls === 'off' },
      ...(user !== null && password !== null && { auth: { user, pass: password } }),
      // Content never refers to files or URLs.
      ...{ disableFileAccess: true, disableUrlAccess: true },
      getSocket: (_, callback) => callback(null, { connection: socket }),
    })
    const sent = transport.sendMail({
      from: { name: 'Kontor', address: from },
      to: { name: '', address: to },
      envelope: { from, to },
      messageId: `<${id}@${from.slice(from.indexOf('@') + 1)}>`,
      ...{ subject: content.subject, text: content.text, html: content.html },
      headers: { 'auto-submitted': 'auto-generated' },
    })
    return (await Promise.race([sent, aborted(signal)])).response
  } finally {
    socket.destroy()
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
