import { type Command, Option } from '@commander-js/extra-typings'
import type { InvitedUser } from '../admin/users.ts'
import { ROLE_RIGHTS, ROLES } from '../domain/tenants/keys.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printRead, withAdmin } from './session.ts'

const NOTES = `
People sign in to the console with a name and a password of their own, so that the audit log shows who did what. The invited
person opens the link and sets a password. The link works once and expires after 7 days.`

export function addUser(program: Command, out: Output): void {
  const user = program.command('user').description('Manage people who sign in to the console with a password.')
  user
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor user invite ada@example.com --role operator', 'kontor user list'))
  addInvite(user, out)
  user
    .command('list')
    .description('List the users.')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor user list'))
    .action(async options => {
      await printRead(options, out, admin => admin.users.list())
    })
  for (const verb of ['disable', 'enable'] as const)
    user
      .command(verb)
      .description(
        verb === 'disable' ? 'Disable a user and end their sessions.' : 'Allow a disabled user to sign in again.',
      )
      .argument('<user>', 'name or id (usr_…)')
      .addOption(dataOption())
      .addHelpText('after', examples(`kontor user ${verb} ada@example.com`))
      .action(async (name, options) => {
        await withAdmin(options, out, async ({ admin }) =>
          out.json(await admin.users.setDisabled(name, verb === 'disable')),
        )
      })
  user
    .command('reset')
    .description('Invalidate the password of a user, end their sessions and print a new invitation link.')
    .argument('<user>', 'name or id (usr_…)')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor user reset ada@example.com'))
    .action(async (name, options) => {
      await withAdmin(options, out, async ({ admin, url }) => out.json(withLink(await admin.users.reset(name), url)))
    })
}

function addInvite(user: Command, out: Output): void {
  user
    .command('invite')
    .description('Create a user and print an invitation link.')
    .argument('<name>', 'name to sign in with, usually an e-mail address')
    .addOption(new Option('--role <role>', ROLE_RIGHTS).choices(ROLES).default('viewer' as const))
    .option('--tenant <tenant>', 'tenant id or name; restricts the user to this tenant (default: all tenants)')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor user invite ada@example.com --role admin',
        'kontor user invite ben@example.com --role viewer --tenant acme',
      ),
    )
    .action((name, { role, tenant, ...options }) =>
      withAdmin(options, out, async ({ admin, url }) =>
        out.json(withLink(await admin.users.invite({ name, role, tenant }), url)),
      ),
    )
}

function withLink({ invitation, ...user }: InvitedUser, url: string) {
  return { ...user, link: `${url}/console#/invitation/${invitation}` }
}

export function addSession(program: Command, out: Output): void {
  const session = program.command('session').description('Manage the sessions of the console.')
  session.addHelpText('after', examples('kontor session list', 'kontor session end ses_4fTzQ9aXw2LmN8pB'))
  session
    .command('list')
    .description('List the browsers that are signed in to the console.')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor session list'))
    .action(async options => {
      await printRead(options, out, admin => admin.sessions.list())
    })
  session
    .command('end')
    .description('End a session, immediately and on every server.')
    .argument('<id>', 'id of the session (ses_…), see `kontor session list`')
    .addOption(dataOption())
    .addHelpText('after', examples('kontor session end ses_4fTzQ9aXw2LmN8pB'))
    .action(async (id, options) => {
      await withAdmin(options, out, async ({ admin }) => out.json(await admin.sessions.end(id)))
    })
}
