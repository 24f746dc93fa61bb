import { ConfigError } from './config.ts'

/** A server that commands speak to over HTTP, with a private key. */
export type RemoteServer = { url: string; key: string }

/** The server of KONTOR_URL, for commands that are given a KONTOR_KEY; null without one. */
export function remoteServer(env: NodeJS.ProcessEnv = process.env): RemoteServer | null {
  const { KONTOR_URL: url = 'http://localhost:8080', KONTOR_KEY: key } = env
  if (!key) return null
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new ConfigError(['KONTOR_URL must begin with http:// or https://'])
  return { url: url.replace(/\/+$/, ''), key }
}
