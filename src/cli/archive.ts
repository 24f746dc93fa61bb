import type { Command } from '@commander-js/extra-typings'
import { archiveView, switchArchive } from '../admin/archive.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { currentUser, dataOption, withDatabase, withReadDatabase } from './session.ts'

const ARCHIVE =
  'Show, enable or disable the archive: events and conversions as Parquet files in the storage that KONTOR_ARCHIVE_URL names.'

const AFTER_RESTORE = '`kontor restore` disables the archive, because the original server may still write to it.'

export function addArchive(program: Command, out: Output): void {
  const archive = program.command('archive').description(ARCHIVE)
  archive.addHelpText('after', examples('kontor archive status'))
  archive
    .command('status')
    .description('Show the location of the archive, its number of files, pending data and the last error.')
    .addOption(dataOption())
    .addHelpText('after', '\nExit code 1 if files cannot be written.')
    .addHelpText('after', examples('kontor archive status'))
    .action(options =>
      withReadDatabase(options, out, async ({ pool }) => {
        const view = await archiveView(pool)
        out.json(view)
        out.exitCode = view.error === null ? 0 : 1
      }),
    )
  for (const [verb, enabled, description] of [
    ['enable', true, `Resume writing files. ${AFTER_RESTORE}`],
    ['disable', false, 'Stop writing files. Data that arrives while the archive is disabled is not archived.'],
  ] as const)
    archive
      .command(verb)
      .description(description)
      .addOption(dataOption())
      .addHelpText('after', examples(`kontor archive ${verb}`))
      .action(options =>
        withDatabase(options, out, async ({ pool }) => out.json(await switchArchive(pool, currentUser(), enabled))),
      )
}
