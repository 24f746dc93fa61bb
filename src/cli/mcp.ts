import type { Command } from '@commander-js/extra-typings'
import { remoteServer } from '../config/config.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'

const NOTES = `
For agents that start MCP servers as local programs. Passes each Model Context Protocol message to KONTOR_URL
(default http://localhost:8080) with the private key KONTOR_KEY. The scopes of the key determine the available tools, which
are all read-only. Clients that support MCP over HTTP can use /mcp directly. See docs/guides/agents.md.`

export function addMcp(program: Command, out: Output): void {
  program
    .command('mcp')
    .description('Run an MCP server over stdio.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('KONTOR_URL=https://kontor.example.com KONTOR_KEY=private-… kontor mcp'))
    .action(async () => {
      const server = remoteServer()
      if (!server)
        throw new UsageError('KONTOR_KEY is not set. Set it to a private key (private-…) of the tenant.')
      const { bridge } = await import('./mcp-bridge.ts')
      await bridge(server, out)
    })
}
