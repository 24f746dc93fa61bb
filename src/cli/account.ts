import type { Command } from '@commander-js/extra-typings'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, printRead, tenantOption } from './session.ts'

const WHICH = 'id of a customer in the billing system, or namespace:id if several billing systems use the same id'

export function addAccount(program: Command, out: Output): void {
  const account = program
    .command('account')
    .description('Merge accounts: report several customers of a billing system as one.')
  account.addHelpText(
    'after',
    examples('kontor account merge --tenant acme cus_43 cus_42', 'kontor account unmerge --tenant acme cus_43'),
  )
  account
    .command('merge')
    .description(
      'Merge an account into another one. Reports then show its subscriptions and invoices under the other account.',
    )
    .argument('<account>', WHICH)
    .argument('<into>', 'account to merge into (id, or namespace:id)')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor account merge --tenant acme cus_43 cus_42'))
    .action((name, into, { tenant, ...options }) =>
      printChange(options, out, admin => admin.accounts.merge(tenant, { account: name, into })),
    )
  account
    .command('unmerge')
    .description('Undo a merge.')
    .argument('<account>', 'account that was merged into another one')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor account unmerge --tenant acme cus_43'))
    .action((name, { tenant, ...options }) => printChange(options, out, admin => admin.accounts.unmerge(tenant, name)))
  account
    .command('list')
    .description('List merged accounts.')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor account list --tenant acme'))
    .action(({ tenant, ...options }) => printRead(options, out, admin => admin.accounts.list(tenant)))
}
