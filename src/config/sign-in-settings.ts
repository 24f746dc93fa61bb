import { setting, withoutDefault } from './setting.ts'
import { claimName, issuerUrl, line, roleMappings } from './values.ts'

/** People sign in to the console at an OpenID Connect provider. None of it is set: they use keys. */
export const signInSettings = {
  oidcIssuer: withoutDefault({
    name: 'KONTOR_OIDC_ISSUER',
    meaning:
      'The OpenID Connect provider at which people sign in to the console. Needs KONTOR_OIDC_CLIENT_ID, ' +
      'KONTOR_OIDC_CLIENT_SECRET, KONTOR_OIDC_ROLES and KONTOR_PUBLIC_URL.',
    expects: 'an https address (http on this machine), for example https://login.example.com/realms/staff',
    read: issuerUrl,
  }),
  oidcClientId: withoutDefault({
    name: 'KONTOR_OIDC_CLIENT_ID',
    meaning:
      'What the provider calls Kontor. Its redirect URI there is KONTOR_PUBLIC_URL and /console/oidc/callback.',
    expects: 'a client id without spaces, for example kontor',
    read: line,
  }),
  oidcClientSecret: withoutDefault({
    name: 'KONTOR_OIDC_CLIENT_SECRET',
    meaning: "The client's secret at the provider, the same on every node.",
    expects: 'at least 16 characters without spaces',
    read: text => (text.length >= 16 ? line(text) : undefined),
    show: () => '(hidden)',
  }),
  oidcRoleClaim: setting({
    name: 'KONTOR_OIDC_ROLE_CLAIM',
    default: 'groups',
    meaning:
      'The claim that tells what somebody may do: a word or a list of words. Dots lead into objects ' +
      '(`realm_access.roles`). Of `email`, only an address that the provider has verified counts.',
    expects: 'the name of a claim, for example groups',
    read: claimName,
  }),
  oidcRoles: withoutDefault({
    name: 'KONTOR_OIDC_ROLES',
    meaning:
      'Which value of the claim gives which role (viewer, operator, admin), for all tenants or for one: ' +
      '`admins=admin,support=viewer,acme-team=operator@acme`. The first that fits counts; who has none is refused.',
    expects: 'a list of value=role or value=role@tenant, for example admins=admin,support=viewer',
    read: roleMappings,
  }),
}
