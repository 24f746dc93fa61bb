import type { TestTenant } from '../server.ts'

export type Placeholders = ReturnType<typeof openPlaceholders>

type Known = { tenant: TestTenant; adminKey: string; url: string; hooksUrl: string; emptyDatabase: string }

const PREFIXES = ['src_', 'tok_', 'trk_', 'adm_', 'private-', 'whsec_', 'dst_', 'key_', 'prof_', 'kontor_bi_'] as const
const PRINTED = /\b(src_|tok_|trk_|adm_|private-|whsec_|dst_|key_|prof_|kontor_bi_)[\w+/=-]{6,}/g
const PRINTED_ID = /\b0[0-9a-f]{7}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/

/**
 * Replaces placeholders such as `src_…` by the newest value of that kind that an earlier command printed. `019c…` is the
 * id of an event, an operation or a receipt. Before the first output, a key is the one of the first start.
 */
export function openPlaceholders({ tenant, adminKey, url, hooksUrl, emptyDatabase }: Known) {
  const values: Record<string, string> = {
    'private-': tenant.privateKey,
    trk_: tenant.trackingKey,
    adm_: adminKey,
    whsec_: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  }
  return {
    /** Each guide has its own tenants, so that guides do not affect each other. */
    fill(text: string): string {
      return text
        .replace(
          /\b(src_|tok_|trk_|adm_|private-|whsec_|dst_|key_|prof_|kontor_bi_|019c)…/g,
          (whole, prefix) => values[prefix] ?? whole,
        )
        .replaceAll(/https:\/\/kontor\.example\.com|http:\/\/localhost:8080/g, url)
        .replaceAll('https://example.com/hooks', hooksUrl)
        .replaceAll('postgres://kontor:PASSWORD@db.internal/kontor', emptyDatabase)
        .replaceAll(/\b(?:acme|default)\b/g, tenant.name)
    },
    learn(printed: string): void {
      for (const prefix of PREFIXES) {
        const found = [...printed.matchAll(PRINTED)].find(([, kind]) => kind === prefix)
        if (found) values[prefix] = found[0]
      }
      const id = PRINTED_ID.exec(printed)
      if (id) values['019c'] = id[0]
    },
    /** The environment for programs. */
    environment: () => ({
      KONTOR_URL: url,
      KONTOR_PRIVATE_KEY: values['private-']!,
      KONTOR_TRACKING_KEY: values.trk_!,
      ...(values.tok_ && { TOKEN: values.tok_ }),
      ...(values.whsec_ && { SECRET: values.whsec_ }),
    }),
  }
}
