import { spawn } from 'node:child_process'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { withoutTrailingSlash } from '../config/values.ts'
import { UsageError } from './errors.ts'
import { examples, readSecretOptions } from './options.ts'
import type { Output } from './output.ts'
import { openRemote, writeProfile } from './remote.ts'
import { dataOption, withReadAdmin } from './session.ts'

const NOTES = `
Stores the URL and an admin key in ~/.config/kontor/profiles.json, which only you can read. To create a key, run this on the server:
kontor key create --kind admin

A command uses the first of these that is set:
  1. the server of --profile NAME or KONTOR_PROFILE
  2. the database of DATABASE_URL
  3. the database in the data directory of --data
  4. the server of KONTOR_URL, with the admin key KONTOR_KEY
  5. the database in KONTOR_DATA_DIR or ./data, if it exists
  6. the server of the profile "default"
Some commands work only on a database; docs/configuration.md lists them.`

export function addLogin(program: Command, out: Output): void {
  program
    .command('login')
    .description('Store the URL and the admin key of a remote server.')
    .argument('<url>', 'URL of the server', parseUrl)
    .option('--profile <name>', 'name of the profile (default: "default")')
    .option(
      '--key <key>',
      'admin key (adm_…); without --key and --key-file, the command asks for it; use - to read from standard input',
    )
    .option('--key-file <path>', 'file that contains the admin key')
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor login https://kontor.example.com',
        'kontor login https://kontor.example.com --profile prod --key-file admin.key',
      ),
    )
    .action(async (url, { profile, key: value, keyFile: file }) => {
      if (value === undefined && file === undefined) out.say('Enter the admin key (adm_…), then Ctrl-D:')
      const { key } = await readSecretOptions({ key: { value: value ?? (file === undefined ? '-' : undefined), file } })
      const server = { url, key: (key ?? '').trim() }
      if (!server.key.startsWith('adm_'))
        throw new UsageError('The key is not an admin key. An admin key starts with adm_.')
      await openRemote(server)('GET', '/admin/v1/tenants')
      const path = await writeProfile(profile, server)
      out.say(`The key is stored in ${path}.`)
      out.json({ profile: profile ?? 'default', url })
    })
}

function parseUrl(text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return withoutTrailingSlash(text)
  throw new InvalidArgumentError('Expected a URL, for example https://kontor.example.com.')
}

const OPENERS: Partial<Record<NodeJS.Platform, string[]>> = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] }

export function addOpen(program: Command, out: Output): void {
  program
    .command('open')
    .description('Open the console in the browser, and print its URL.')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor open', 'kontor open --profile prod'))
    .action(options =>
      withReadAdmin(options, out, async ({ url }) => {
        const address = `${url}/console`
        out.print(`${address}\n`)
        if (!process.stdout.isTTY) return
        const [program = 'xdg-open', ...words] = OPENERS[process.platform] ?? []
        // Without a browser on this machine, the printed URL is the result.
        spawn(program, [...words, address], { stdio: 'ignore', detached: true })
          .on('error', () => {})
          .unref()
      }),
    )
}
