import type { Command } from '@commander-js/extra-typings'
import { archiveView, switchArchive } from '../admin/archive.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { currentUser, dataOption, readingDatabase, withDatabase } from './session.ts'

export function addArchive(program: Command, out: Output): void {
  const archive = program
    .command('archive')
    .description('The archive: events and conversions as Parquet files (KONTOR_ARCHIVE_URL).')
  archive.addHelpText('after', examples('kontor archive status'))
  archive
    .command('status')
    .description('Show where files go, how many there are, what waits, and what stands in the way.')
    .addOption(dataOption())
    .addHelpText('after', '\nExit code 1 while files cannot be written.')
    .addHelpText('after', examples('kontor archive status'))
    .action(options =>
      readingDatabase(options, out, async ({ pool }) => {
        const view = await archiveView(pool)
        out.json(view)
        out.exitCode = view.error === null ? 0 : 1
      }),
    )
  for (const [verb, enabled, description] of [
    ['enable', true, 'Write files again, also in a restored copy.'],
    ['disable', false, 'Write no more files. What comes meanwhile is not archived.'],
  ] as const)
    archive
      .command(verb)
      .description(description)
      .addOption(dataOption())
      .addHelpText('after', examples(`kontor archive ${verb}`))
      .action(options =>
        withDatabase(options, out, async ({ pool }) =>
          out.json(await switchArchive(pool, currentUser(), enabled)),
        ),
      )
}
