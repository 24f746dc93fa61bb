import type { Command } from '@commander-js/extra-typings'
import { remoteServer } from '../config/remote.ts'
import { UsageError } from './errors.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'

const NOTES = `
For agents that start their tools as programs: speaks the Model Context Protocol on stdin and stdout, and passes each message on to
KONTOR_URL (default http://localhost:8080) with the private key KONTOR_KEY. The tools are those that the scopes of the key allow;
all of them only read. Clients that speak HTTP need none of this: they reach /mcp themselves. See docs/guides/agents.md.`

export function addMcp(program: Command, out: Output): void {
  program
    .command('mcp')
    .description('Be a tool server for an agent, over stdin and stdout.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('KONTOR_URL=https://kontor.example.com KONTOR_KEY=private-… kontor mcp'))
    .action(async () => {
      const server = remoteServer()
      if (!server) throw new UsageError('Give KONTOR_KEY: a private key (private-…) of the tenant.')
      const { bridge } = await import('./mcp-bridge.ts')
      await bridge(server, out)
    })
}
