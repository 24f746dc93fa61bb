import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { SURFACES, settings } from '../../src/config/settings.ts'
import { compareVersions, OLDEST_SERVER } from '../../src/log/jetstream/stream.ts'
import { openMetrics } from '../../src/telemetry/metrics.ts'
import { natsServer } from '../../torture/deployment/nats.ts'
import { withoutNats } from '../nats.ts'

const root = new URL('../../', import.meta.url)
const textOf = (path: string) => readFileSync(new URL(path, root), 'utf8')

type Manifest = {
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
  // biome-ignore lint/suspicious/noExplicitAny: what Kubernetes reads, in its many shapes
  spec?: any
}

function manifestsIn(folder: string): Manifest[] {
  return readdirSync(new URL(folder, root))
    .filter(name => name !== 'kustomization.yaml')
    .flatMap(name => parseAllDocuments(textOf(`${folder}${name}`), { strict: true }))
    .map(document => {
      assert.deepEqual(document.errors, [])
      return document.toJS() as Manifest
    })
}

const manifests = manifestsIn('deploy/kubernetes/')
const ofKind = (kind: string) => manifests.filter(manifest => manifest.kind === kind)
const known = new Set<string>(Object.values(settings).map(({ name }) => name))

function read(name: string, value: string): unknown {
  const setting = Object.values(settings).find(setting => setting.name === name)
  assert.ok(setting, `${name} is a setting`)
  return setting.read(value)
}

test('every setting in deploy/ exists and has a valid value', () => {
  for (const [name, value] of Object.entries(ofKind('ConfigMap')[0]!.data!))
    assert.notEqual(read(name, value), undefined, `${name}=${value}`)
  for (const file of [
    'docker/compose.yaml',
    'docker/compose.fleet.yaml',
    'docker/Dockerfile',
    'systemd/kontor.service',
  ])
    for (const [name] of textOf(`deploy/${file}`).matchAll(/\bKONTOR_[A-Z_]+\b/g))
      assert.ok(known.has(name), `${name} in ${file}`)
  const { environment } = parse(textOf('deploy/docker/compose.fleet.yaml'), { merge: true }).services.http
  for (const [name, value] of Object.entries(environment as Record<string, string>))
    if (!value.includes('${')) assert.notEqual(read(name, value), undefined, `${name}=${value}`)
})

test('the image is built from the tarball, with the dependencies of the lock file', t => {
  const dockerfile = textOf('deploy/docker/Dockerfile').replaceAll('\\\n', ' ')
  const ignored = textOf('.dockerignore').split('\n')
  const stages = [...dockerfile.matchAll(/^FROM (\S+) AS (\S+)$/gm)].map(([, , name]) => name)
  assert.deepEqual(stages, ['packed', 'installed'])
  const copies = [...dockerfile.matchAll(/^COPY (?:--from=(\S+) )?(.+) \S+$/gm)]
  for (const [line, stage, sources] of copies)
    if (stage) assert.ok(stages.includes(stage), line)
    else
      for (const path of sources!.split(' ')) {
        assert.ok(existsSync(new URL(path, root)), `${path} of ${line}`)
        assert.ok(!ignored.includes(path), `${path} is sent to the build`)
      }
  // Packing needs only Node itself: that stage installs no dependency.
  const needed = ['scripts/pack.ts']
  for (const file of needed)
    for (const [, name] of textOf(file).matchAll(/^(?:import .*|export .*|\} )from '([^']+)'/gm))
      if (name!.startsWith('.')) needed.push(join(dirname(file), name!))
      else assert.match(name!, /^node:/, file)
  for (const folder of ['src', 'demo', 'embedded-postgres', 'bin', 'console', 'migrations', 'docs', 'scripts'])
    assert.ok(!ignored.includes(folder), folder)
  const [, final = ''] = dockerfile.split(/^FROM \S+$/m)
  assert.equal(final.match(/^USER (\S+)$/m)?.[1], 'kontor', 'the image does not run as root')
  assert.match(final, /^HEALTHCHECK .*\/healthz/m)
  assert.match(final, /ln -s \/opt\/kontor\/bin\/kontor\.mjs \/usr\/local\/bin\/kontor$/m)
  const [, entry] = /^ENTRYPOINT \["\/opt\/kontor\/(.+)"\]$/m.exec(dockerfile)!
  assert.ok(existsSync(new URL(entry!, root)))
  t.diagnostic('where there is a container engine: docker build -f deploy/docker/Dockerfile .')
})

test('the compose fleet has three NATS servers that sync, each with its own volume, and all nodes use all of them', async t => {
  const { services, volumes } = parse(textOf('deploy/docker/compose.fleet.yaml'), { merge: true })
  const servers = Object.keys(services).filter(name => name.startsWith('nats-'))
  assert.equal(servers.length, 3)
  const conf = textOf('deploy/docker/nats.conf')
  assert.match(conf, /sync_interval: always/)
  for (const name of servers) {
    const { image, command, volumes: mounted } = services[name]
    const [, version] = /^nats:([\d.]+)/.exec(image) ?? []
    assert.ok(compareVersions(`${version}.0`, OLDEST_SERVER) >= 0, image)
    assert.equal(command[command.indexOf('--name') + 1], name)
    assert.ok(mounted.includes(`${name}:/data`) && name in volumes, name)
    assert.ok(conf.includes(`nats://${name}:6222`), `${name} is in the routes`)
    for (const node of ['http', 'worker'] as const) {
      assert.match(services[node].environment.NATS_URL, new RegExp(`\\b${name}:4222`))
      assert.equal(services[node].depends_on[name].condition, 'service_healthy')
    }
  }
  if (withoutNats) return t.diagnostic(withoutNats)
  const words = (services['nats-1'].command as string[]).map(word =>
    word === '/etc/nats/nats.conf' ? new URL('deploy/docker/nats.conf', root).pathname : word,
  )
  const checked = spawnSync(natsServer!, ['-t', ...words])
  assert.equal(checked.status, 0, checked.stderr.toString())
})

test('the kustomization lists every file in its folder', () => {
  const { resources } = parse(textOf('deploy/kubernetes/kustomization.yaml')) as { resources: string[] }
  const others = readdirSync(new URL('deploy/kubernetes/', root)).filter(name => name !== 'kustomization.yaml')
  assert.deepEqual(resources.toSorted(), others.toSorted())
})

test('the deployments are probed at the operations port, stop in time, and match the selectors of the other manifests', () => {
  const deployments = ofKind('Deployment')
  const settingsOf = ofKind('ConfigMap')[0]!.data!
  const surfaces = new Set<string>()
  for (const { metadata, spec } of deployments) {
    const pod = spec.template.spec
    const [container] = pod.containers
    assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels)
    assert.equal(pod.enableServiceLinks, false)
    assert.equal(pod.securityContext.runAsNonRoot, true)
    assert.equal(container.securityContext.readOnlyRootFilesystem, true)
    const ports = new Map(
      container.ports.map((port: { name: string; containerPort: number }) => [port.name, port.containerPort]),
    )
    assert.equal(String(ports.get('ops')), settingsOf.KONTOR_OPS_PORT)
    for (const [probe, path] of [
      ['startupProbe', '/healthz'],
      ['livenessProbe', '/healthz'],
      ['readinessProbe', '/readyz'],
    ] as const)
      assert.deepEqual(container[probe].httpGet, { path, port: 'ops' })
    const drainS = (read('KONTOR_DRAIN_TIMEOUT', settingsOf.KONTOR_DRAIN_TIMEOUT!) as number) / 1000
    // Requests and workers each have this timeout.
    assert.ok(pod.terminationGracePeriodSeconds > 5 + 2 * drainS)
    const own = container.args.at(-1).split(',') as string[]
    for (const surface of own) surfaces.add(surface)
    for (const kind of ['PodDisruptionBudget', 'HorizontalPodAutoscaler'])
      assert.ok(
        ofKind(kind).some(other => other.metadata.name === metadata.name),
        `${kind} of ${metadata.name}`,
      )
  }
  assert.deepEqual([...surfaces].toSorted(), [...SURFACES].toSorted())
  const labels = deployments.map(({ spec }) => spec.template.metadata.labels)
  for (const { spec } of [...ofKind('PodDisruptionBudget'), ...ofKind('Service')])
    assert.ok(labels.some(own => JSON.stringify(own) === JSON.stringify(spec.selector.matchLabels ?? spec.selector)))
  for (const { spec } of ofKind('HorizontalPodAutoscaler'))
    assert.ok(deployments.some(({ metadata }) => metadata.name === spec.scaleTargetRef.name))
})

/** The names in a scrape, including the series of histograms. */
async function metricNames(): Promise<Set<string>> {
  const metrics = openMetrics()
  metrics.watchPipeline(async () => [])
  metrics.watchDeadLetters(async () => 0)
  metrics.watchStalled(async () => 0)
  metrics.watchRetention(async () => false)
  metrics.watchDisk(() => 1)
  metrics.watchBacklog({ entries: () => 0, max: 1 })
  const names = new Set(['up'])
  for (const [, name, type] of (await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name!)
    if (type === 'histogram') for (const part of ['bucket', 'sum', 'count']) names.add(`${name}_${part}`)
  }
  return names
}

test('the dashboard, the alerts and the autoscaler use only metrics that exist', async () => {
  const names = await metricNames()
  const dashboard = JSON.parse(textOf('deploy/monitoring/grafana-dashboard.json')) as {
    panels: { title: string; targets: { expr: string }[] }[]
  }
  const alerts = parse(textOf('deploy/monitoring/alerts.yaml')) as {
    groups: { rules: { alert: string; expr: string }[] }[]
  }
  const expressions = [
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...alerts.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
    ...ofKind('HorizontalPodAutoscaler').flatMap(({ spec }) =>
      spec.metrics.flatMap((metric: { external?: { metric: { name: string } } }) => metric.external?.metric.name ?? []),
    ),
  ]
  assert.ok(expressions.length > 20)
  const named = (text: string) =>
    text.replaceAll(/"[^"]*"/g, '').match(/\b(?:kontor|http|process|nodejs|up)[a-z_]*\b/g) ?? []
  const mentioned = expressions.flatMap(named)
  for (const name of mentioned) assert.ok(names.has(name), name)
  for (const name of names)
    if (name.startsWith('kontor_') && !/_(bucket|sum|count)$/.test(name) && name !== 'kontor_pool_idle')
      assert.ok(
        mentioned.some(other => other.startsWith(name)),
        `${name} is shown somewhere`,
      )
})
