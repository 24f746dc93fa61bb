import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { WEEKDAYS, type Weekday } from '../domain/alerts/digest.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, printRead, withReadAdmin } from './session.ts'

const NOTES = `
Kontor sends the digest to destinations that receive digests:
  kontor destination create --tenant acme --url mailto:ceo@example.com --what digests`

export function addDigest(program: Command, out: Output): void {
  const digest = program
    .command('digest')
    .description('Schedule and preview the weekly digest: a message with MRR, its movements and what needs attention.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor digest preview acme', 'kontor digest set acme --weekday monday --hour 8'))
  digest
    .command('show')
    .description('Show the schedule, the next delivery and the recipients.')
    .argument('<tenant>', 'tenant id or name')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor digest show acme'))
    .action((tenant, options) => printRead(options, out, admin => admin.digests.show(tenant)))
  digest
    .command('set')
    .description(
      'Change the schedule. Weekday and hour are in the time zone of the tenant (setting time_zone of kontor policy).',
    )
    .argument('<tenant>', 'tenant id or name')
    .option('--weekday <day>', `${WEEKDAYS.join(', ')}`, parseWeekday)
    .option('--hour <hour>', '0 to 23', parseHour)
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor digest set acme --weekday friday --hour 17'))
    .action((tenant, { weekday, hour, ...options }) =>
      printChange(options, out, admin =>
        admin.digests.set(tenant, { ...(weekday && { weekday }), ...(hour !== undefined && { hour }) }),
      ),
    )
  digest
    .command('preview')
    .description('Print the digest as it would be sent today, without sending it.')
    .argument('<tenant>', 'tenant id or name')
    .option('--html', 'print the HTML part instead of the text')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor digest preview acme', 'kontor digest preview acme --html > digest.html'))
    .action((tenant, { html, ...options }) =>
      withReadAdmin(options, out, async ({ previewDigest }) => {
        const { subject, ...content } = await previewDigest(tenant)
        out.print(html ? content.html : `${subject}\n\n${content.text}`)
      }),
    )
}

function parseWeekday(text: string): Weekday {
  const weekday = WEEKDAYS.find(name => name === text.toLowerCase())
  if (weekday) return weekday
  throw new InvalidArgumentError(`Expected one of ${WEEKDAYS.join(', ')}.`)
}

function parseHour(text: string): number {
  if (/^\d{1,2}$/.test(text) && Number(text) <= 23) return Number(text)
  throw new InvalidArgumentError('Expected a number from 0 to 23.')
}
