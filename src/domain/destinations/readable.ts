import { type Digest, renderDigest } from '../alerts/digest.ts'
import { escapeHtml, htmlPage, lines, oneLine, type Readable } from './markup.ts'

type Alert = { tenant: string; tenant_name: string; state: string; summary: string }
type Test = { message: string }

/** `data`: JSON. `consoleUrl`: null if KONTOR_PUBLIC_URL is not set. */
export function renderMessage({ type, data }: { type: string; data: string }, consoleUrl: string | null): Readable {
  const content = JSON.parse(data)
  if (type === 'digest.weekly') return renderDigest(content as Digest, consoleUrl)
  return type === 'kontor.test' ? renderTest(content as Test) : renderAlert(content as Alert, consoleUrl)
}

function renderAlert({ tenant, tenant_name, state, summary }: Alert, consoleUrl: string | null): Readable {
  const name = oneLine(tenant_name)
  const sentence = oneLine(state === 'resolved' ? `Resolved: ${summary}` : summary)
  const link = consoleUrl && `${consoleUrl}#/alerts?tenant=${encodeURIComponent(tenant)}`
  const subject = `[${name}] ${sentence}`
  return {
    subject,
    text: lines([sentence, '', `Tenant: ${name}`, link && `Alerts: ${link}`]),
    html: htmlPage([
      `<p style="font-size:16px"><strong>${escapeHtml(sentence)}</strong></p>`,
      `<p>Tenant: ${escapeHtml(name)}</p>`,
      link && `<p><a href="${escapeHtml(link)}">Open alerts</a></p>`,
    ]),
    chat: lines([subject, link]),
  }
}

function renderTest({ message }: Test): Readable {
  const text = oneLine(message)
  return {
    subject: '[Kontor] Test message',
    text: lines([text]),
    html: htmlPage([`<p>${escapeHtml(text)}</p>`]),
    chat: lines([text]),
  }
}
