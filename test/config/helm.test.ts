import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { SURFACES, settings } from '../../src/config/settings.ts'

const chart = new URL('../../deploy/helm/kontor/', import.meta.url)
const textOf = (path: string) => readFileSync(new URL(path, chart), 'utf8')

// biome-ignore lint/suspicious/noExplicitAny: what Kubernetes reads, in its many shapes
type Any = any
type Values = Record<string, Any>

const about = parse(textOf('Chart.yaml'))
const defaults: Values = parse(textOf('values.yaml'))
const embedded: Values = parse(textOf('values-embedded.yaml'))
const isValid = new Ajv({ strict: false }).compile(JSON.parse(textOf('values.schema.json')))

/** Later values replace earlier ones; objects are merged. */
function merge(values: Values, changes: Values): Values {
  const isMap = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  const merged = Object.entries(changes).map(([name, value]) => [
    name,
    isMap(value) && isMap(values[name]) ? merge(values[name], value) : value,
  ])
  return { ...values, ...Object.fromEntries(merged) }
}

/*
 * Debian and npm have no Helm. The templates therefore use only the actions that this test can render: values, `if`,
 * `else`, `range` over a map, and five functions. It fails on any other.
 */

type Block = { action: string; parts: (string | Block)[]; otherwise: (string | Block)[] }

function parseTemplate(text: string): Block {
  const root: Block = { action: '', parts: [], otherwise: [] }
  const open: { block: Block; parts: Block['parts'] }[] = [{ block: root, parts: root.parts }]
  let trims = false
  for (const piece of text.split(/(\{\{.*?\}\})/)) {
    const last = open.at(-1)!
    if (!piece.startsWith('{{')) {
      last.parts.push(trims ? piece.trimStart() : piece)
      trims = false
      continue
    }
    if (piece.startsWith('{{-') && typeof last.parts.at(-1) === 'string')
      last.parts.push((last.parts.pop() as string).trimEnd())
    trims = piece.endsWith('-}}')
    const action = piece.replace(/^\{\{-?\s*|\s*-?\}\}$/g, '')
    if (action === 'end') open.pop()
    else if (action === 'else') open.splice(-1, 1, { block: last.block, parts: last.block.otherwise })
    else {
      const block: Block = { action, parts: [], otherwise: [] }
      last.parts.push(block)
      if (/^(if|range) /.test(action)) open.push({ block, parts: block.parts })
    }
  }
  assert.equal(open.length, 1, 'every block ends')
  return root
}

type Scope = { dot: unknown; variables: Record<string, unknown> }

function renderParts(parts: Block['parts'], scope: Scope): string {
  return parts.map(part => (typeof part === 'string' ? part : renderBlock(part, scope))).join('')
}

function renderBlock({ action, parts, otherwise }: Block, scope: Scope): string {
  const [, condition] = /^if (\S+)$/.exec(action) ?? []
  if (condition) return renderParts(isEmpty(find(condition, scope)) ? otherwise : parts, scope)
  const [, key, name, map] = /^range (\$\w+), (\$\w+) := (\S+)$/.exec(action) ?? []
  if (key && name && map)
    return Object.entries(find(map, scope) as object)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([own, value]) =>
        renderParts(parts, { dot: value, variables: { ...scope.variables, [key]: own, [name]: value } }),
      )
      .join('')
  const [first, ...functions] = action.split(' | ')
  return String(functions.reduce((value, call) => apply(call, value, scope), find(first!, scope)))
}

function find(path: string, { dot, variables }: Scope): unknown {
  assert.match(path, /^(\$\w*)?(\.\w+)*$/, `${path} is a value`)
  const [start, ...names] = path.split('.')
  return names.reduce(
    (value, name) => {
      assert.ok(typeof value === 'object' && value !== null && name in value, `${path} exists`)
      return (value as Values)[name]
    },
    start === '' ? dot : variables[start!],
  )
}

function apply(call: string, value: unknown, scope: Scope): unknown {
  const [name, argument = ''] = call.split(' ')
  if (name === 'quote') return JSON.stringify(String(value))
  if (name === 'toYaml') return stringify(value, { sortMapEntries: true }).trimEnd()
  if (name === 'nindent') return `\n${String(value).replace(/^/gm, ' '.repeat(Number(argument)))}`
  if (name === 'sha256sum') return createHash('sha256').update(String(value)).digest('hex')
  if (name === 'default') return isEmpty(value) ? find(argument, scope) : value
  throw new Error(`the function ${name} is not available`)
}

function isEmpty(value: unknown): boolean {
  return !value || (typeof value === 'object' && Object.keys(value).length === 0)
}

function render(changes: Values): Any[] {
  const values = merge(defaults, changes)
  assert.ok(isValid(values), JSON.stringify(isValid.errors))
  const root = { Values: values, Release: { Name: 'shop' }, Chart: { AppVersion: about.appVersion } }
  return readdirSync(new URL('templates/', chart)).flatMap(file => {
    const text = renderParts(parseTemplate(textOf(`templates/${file}`)).parts, { dot: root, variables: { $: root } })
    if (!file.endsWith('.yaml')) return []
    return parseAllDocuments(text, { strict: true }).flatMap((document: Any) => {
      assert.deepEqual(document.errors, [], file)
      return document.toJS() ?? []
    })
  })
}

const namesOf = (manifests: Any[], kind: string) =>
  manifests.filter(manifest => manifest.kind === kind).map(({ metadata }) => metadata.name)
const one = (manifests: Any[], kind: string) => manifests.find(manifest => manifest.kind === kind)

function checkPods(manifests: Any[]): void {
  const { data } = one(manifests, 'ConfigMap')
  for (const [name, value] of Object.entries<string>(data)) {
    const setting = Object.values(settings).find(setting => setting.name === name)
    assert.notEqual(setting?.read(value), undefined, `${name}=${value}`)
  }
  const surfaces: string[] = []
  for (const { spec } of manifests.filter(({ kind }) => kind === 'Deployment')) {
    const { spec: pod, metadata } = spec.template
    const [container] = pod.containers
    for (const [label, value] of Object.entries(spec.selector.matchLabels)) assert.equal(metadata.labels[label], value)
    assert.deepEqual([pod.securityContext.runAsNonRoot, pod.enableServiceLinks], [true, false])
    assert.equal(container.securityContext.readOnlyRootFilesystem, true)
    assert.deepEqual(container.securityContext.capabilities.drop, ['ALL'])
    assert.deepEqual(container.readinessProbe.httpGet, { path: '/readyz', port: 'ops' })
    for (const probe of ['startupProbe', 'livenessProbe'])
      assert.deepEqual(container[probe].httpGet, { path: '/healthz', port: 'ops' })
    assert.equal(container.image, `images.example.com/kontor:${about.appVersion}`)
    assert.ok(container.resources.requests.cpu)
    surfaces.push(...container.args.at(-1).split(','))
  }
  assert.deepEqual(surfaces.toSorted(), [...SURFACES].toSorted(), 'the nodes serve everything, once')
}

test('the default chart has HTTP nodes and workers that scale with their processor time', () => {
  const manifests = render({})
  checkPods(manifests)
  assert.deepEqual(namesOf(manifests, 'Deployment'), ['shop-http', 'shop-worker'])
  assert.deepEqual(namesOf(manifests, 'HorizontalPodAutoscaler'), ['shop-http', 'shop-worker'])
  assert.deepEqual(namesOf(manifests, 'PodDisruptionBudget'), ['shop-http', 'shop-worker'])
  for (const { spec } of manifests.filter(({ kind }) => kind === 'HorizontalPodAutoscaler'))
    assert.deepEqual([spec.metrics[0].resource.name, spec.minReplicas], ['cpu', 2])
  const [http, worker] = manifests.filter(({ kind }) => kind === 'Deployment')
  // Otherwise an upgrade would undo the autoscaler.
  assert.equal('replicas' in http.spec, false)
  const { selector } = one(manifests, 'Service').spec
  const matches = (labels: Values) => Object.entries(selector).every(([label, value]) => labels[label] === value)
  assert.deepEqual(
    [http, worker].map(({ spec }) => matches(spec.template.metadata.labels)),
    [true, false],
  )
  assert.equal(one(manifests, 'PersistentVolumeClaim'), undefined)
  const { ingress } = one(manifests, 'NetworkPolicy').spec
  assert.deepEqual(
    ingress.map(({ ports }: Any) => ports[0].port),
    ['http', 'ops'],
  )
  assert.equal(one(manifests, 'Ingress'), undefined)
})

test('with the embedded PostgreSQL there is one node with a volume, which is replaced and never doubled', () => {
  const manifests = render(embedded)
  checkPods(manifests)
  assert.deepEqual(namesOf(manifests, 'Deployment'), ['shop-http'])
  const { spec } = one(manifests, 'Deployment')
  assert.deepEqual([spec.replicas, spec.strategy.type], [1, 'Recreate'])
  const claim = one(manifests, 'PersistentVolumeClaim')
  assert.equal(spec.template.spec.volumes[0].persistentVolumeClaim.claimName, claim.metadata.name)
  assert.equal(claim.metadata.annotations['helm.sh/resource-policy'], 'keep')
  assert.equal(one(manifests, 'HorizontalPodAutoscaler'), undefined)
})

const ingress = { enabled: true, className: 'nginx', host: 'kontor.example.com', tlsSecretName: 'tls' }
const behindProxy = { publicUrl: 'https://kontor.example.com', trustProxy: '1', ingress }

test('an ingress has TLS and needs the public URL and the trusted proxies', () => {
  const manifests = render(behindProxy)
  const { rules, tls } = one(manifests, 'Ingress').spec
  assert.deepEqual([rules[0].host, tls[0].secretName], ['kontor.example.com', 'tls'])
  assert.equal(rules[0].http.paths[0].backend.service.name, one(manifests, 'Service').metadata.name)
  const { data } = one(manifests, 'ConfigMap')
  assert.deepEqual([data.KONTOR_PUBLIC_URL, data.KONTOR_TRUST_PROXY], ['https://kontor.example.com', '1'])
  for (const missing of ['publicUrl', 'trustProxy'])
    assert.equal(isValid(merge(defaults, { ...behindProxy, [missing]: '' })), false, missing)
})

test('wrong values are rejected', () => {
  for (const wrong of [
    { replicas: 3 },
    { image: { tag: 1 } },
    { settings: { KONTOR_PORT: 8080 } },
    { nodes: { http: { surfaces: 'web' } } },
    merge(embedded, { nodes: { http: { replicas: 2 } } }),
    merge(embedded, { nodes: { worker: { enabled: true } } }),
  ])
    assert.equal(isValid(merge(defaults, wrong)), false, JSON.stringify(wrong))
})

test('the chart has the version of the package, and Helm accepts it where it is installed', t => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.deepEqual([about.version, about.appVersion], [version, version])
  if (spawnSync('helm', ['version']).status !== 0) return t.diagnostic('helm is not installed')
  const linted = spawnSync('helm', ['lint', '--strict', chart.pathname])
  assert.equal(linted.status, 0, linted.stdout.toString())
  const rendered = spawnSync('helm', ['template', 'shop', chart.pathname])
  assert.equal(rendered.status, 0, rendered.stderr.toString())
  const kinds = (manifests: Any[]) => manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()
  assert.deepEqual(
    kinds(parseAllDocuments(rendered.stdout.toString()).flatMap((document: Any) => document.toJS() ?? [])),
    kinds(render({})),
  )
})
