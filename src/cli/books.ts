import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, printRead, tenantOption } from './session.ts'

const BOOKS = 'Close months: keep their figures as they are now, and list later changes as restatements.'

export function addBooks(program: Command, out: Output): void {
  const books = program.command('books').description(BOOKS)
  books.addHelpText(
    'after',
    examples('kontor books close --tenant acme 2026-10', 'kontor books status --tenant acme 2026-10'),
  )
  books
    .command('close')
    .description(
      'Close a month. Reports with the query parameter basis=as_closed keep its current figures; other reports include later changes.',
    )
    .argument(
      '<month>',
      'YYYY-MM; it must have ended in the time zone of the tenant (setting time_zone of kontor policy)',
    )
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor books close --tenant acme 2026-10'))
    .action((month, { tenant, ...options }) => printChange(options, out, admin => admin.books.close(tenant, month)))
  books
    .command('reopen')
    .description('Reopen a closed month. This deletes the figures that were kept, and the list of restatements.')
    .argument('<month>', 'YYYY-MM')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor books reopen --tenant acme 2026-10'))
    .action(async (month, { tenant, ...options }) => {
      await printChange(options, out, admin => admin.books.reopen(tenant, month))
      out.say(`${month} is open again. The output shows the closing that was deleted.`)
    })
  books
    .command('status')
    .description('List closed months and their restatements: changes since the month was closed, 100 per page.')
    .argument('[month]', 'only restatements of this month (YYYY-MM)')
    .option('--page <number>', 'page of the restatements', parsePage, 1)
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor books status --tenant acme', 'kontor books status --tenant acme 2026-10'))
    .action((month, { tenant, page, ...options }) =>
      printRead(options, out, async admin => {
        const status = await admin.books.status(tenant, { month, page, pageSize: 100 })
        const isClosed = month === undefined || status.months.some(closed => closed.month === month)
        if (!isClosed) out.say(`${month} is not closed.`)
        return status
      }),
    )
}

function parsePage(text: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a page number from 1.')
}
