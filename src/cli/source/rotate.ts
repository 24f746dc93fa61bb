import type { Command } from '@commander-js/extra-typings'
import { UsageError } from '../errors.ts'
import { examples } from '../examples.ts'
import type { Output } from '../output.ts'
import { overlapOption } from '../overlap-option.ts'
import { secretOptions } from '../secret-options.ts'
import { dataOption, withDatabase } from '../session.ts'

export function addSourceRotate(source: Command, out: Output): void {
  source
    .command('rotate')
    .description(
      'Replace the token or the signing secret; the previous one remains valid during the overlap.',
    )
    .argument('<id>', 'id of the source (src_…)')
    .option('--token', 'replace the bearer token')
    .option('--signing-secret', 'replace the signing secret, or set the first one')
    .option('--value <value>', 'new value (default: a random one); - reads standard input')
    .option('--value-file <path>', 'file that contains the new value')
    .addOption(overlapOption())
    .addOption(dataOption())
    .addHelpText('after', '\nPrints {"id", "token"} or {"id", "signing_secret"}, and "previous_expires_at".')
    .addHelpText(
      'after',
      examples(
        'kontor source rotate src_4fTzQ9aXw2LmN8pB --token',
        'kontor source rotate src_4fTzQ9aXw2LmN8pB --signing-secret --overlap-hours 1',
      ),
    )
    .action(async (id, options) => {
      const { token = false, signingSecret = false, overlapHours } = options
      if (token === signingSecret) throw new UsageError('Give either --token or --signing-secret.')
      const what = token ? 'token' : 'signing_secret'
      const { value } = await secretOptions({ value: { value: options.value, file: options.valueFile } })
      await withDatabase(options, out, async ({ admin }) => {
        const rotated = await admin.sources.rotate(id, { what, value, overlapHours })
        const before = (what === 'token' ? rotated.tokens : rotated.signing_secrets)[1]
        out.json({ id: rotated.id, [what]: rotated[what], previous_expires_at: before?.expires_at ?? null })
      })
    })
}
