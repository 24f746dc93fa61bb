import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { InputData, JSONSchemaInput, quicktype } from 'quicktype-core'
import { typesOf } from '../../sdk/js/scripts/types.ts'
import { sharedServer, type TestServer } from '../server.ts'

/** What public generators create from the document: complete clients in TypeScript and Perl, and in Python the types of the responses. All call the server. */

const run = promisify(execFile)
const root = new URL('../../', import.meta.url).pathname

let server: TestServer
let folder: string
let document: {
  components: { schemas: Record<string, object> }
  paths: Record<string, Record<string, { operationId?: string }>>
}

before(async () => {
  server = await sharedServer()
  folder = await mkdtemp(join(await realpath(tmpdir()), 'kontor-clients-'))
  document = (await server.request('/openapi.json')).body
})
after(async () => {
  await rm(folder, { recursive: true, force: true })
  await server.close()
})

const environment = () => ({ PATH: process.env.PATH, URL: server.url, KEY: server.tenant.privateKey })

const TYPESCRIPT = `
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.ts'

const { URL = '', KEY } = process.env
const kontor = createClient<paths>({ baseUrl: URL, headers: { authorization: \`Bearer \${KEY}\` } })
const written = await kontor.POST('/v1/products', {
  params: { header: { prefer: 'wait=10' } },
  body: { entityType: 'product', id: 'p-ts', sourceUpdatedAt: '2026-01-31T09:30:00Z', data: { sku: 'TS-1' } },
})
const read = await kontor.GET('/v1/products/{id}', { params: { path: { id: 'TS-1' } } })
const product: components['schemas']['Product'] | undefined = read.data
const missing = await kontor.GET('/v1/orders/{id}', { params: { path: { id: 'none' } } })
const problem: components['schemas']['Problem'] | undefined = missing.error
console.log(JSON.stringify({ status: written.data?.status, id: product?.id, code: problem?.code }))
`

test('a generated TypeScript client compiles, writes a record and reads it', async () => {
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, 'schema.ts'), await typesOf(document as never))
  await writeFile(join(folder, 'client.ts'), TYPESCRIPT)
  const strict = ['--strict', '--noEmit', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023']
  const flags = [...strict, '--types', 'node', '--allowImportingTsExtensions', '--pretty', 'false']
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const compiled = await run(process.execPath, [compiler, ...flags, 'client.ts'], { cwd: folder }).catch(error => error)
  assert.equal(compiled.stdout, '')
  const { stdout } = await run(process.execPath, ['client.ts'], { cwd: folder, env: environment() })
  assert.deepEqual(JSON.parse(stdout), { status: 'applied', id: 'p-ts', code: 'not_found' })
})

const PERL = `
use strict; use warnings;
use Mojo::JSON 'encode_json';
use OpenAPI::Client;

my $kontor = OpenAPI::Client->new("openapi.json")->base_url(Mojo::URL->new($ENV{URL}));
$kontor->ua->on(start => sub { $_[1]->req->headers->authorization("Bearer $ENV{KEY}") });
my %product = (entityType => "product", id => "p-pl", sourceUpdatedAt => "2026-01-31T09:30:00Z", data => {sku => "PL-1"});
my $written = $kontor->postProducts({prefer => "wait=10", body => \\%product});
my $read = $kontor->getProductsById({id => "PL-1"});
my $missing = $kontor->getOrdersById({id => "none"});
my $invalid = $kontor->getEvents({limit => "many"});
print encode_json({
  status => $written->res->json("/status"), id => $read->res->json("/id"), code => $missing->res->json("/code"),
  # Found by the client, before it sends the request.
  invalid => $invalid->res->json("/errors/0/path"),
  without => [grep { !$kontor->can($_) } @ARGV],
});
`
const PERL_CLIENT = '/usr/share/perl5/OpenAPI/Client.pm'
// The generator validates the document by this schema, which it would download. Other tests validate the document.
const SCHEMA_OF_DOCUMENTS = 'https://spec.openapis.org/oas/3.1/schema/2021-05-20'

test('a generated Perl client has every operation, writes a record and reads it', async t => {
  if (!existsSync(PERL_CLIENT)) {
    const howToInstall = 'needs OpenAPI::Client (apt-get install libopenapi-client-perl)'
    assert.notEqual(process.env.KONTOR_TEST_REQUIRE_ALL, '1', howToInstall)
    return t.skip(howToInstall)
  }
  const cached = createHash('md5').update(SCHEMA_OF_DOCUMENTS).digest('hex')
  await writeFile(join(folder, cached), JSON.stringify({ $id: SCHEMA_OF_DOCUMENTS }))
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(document))
  await writeFile(join(folder, 'client.pl'), PERL)
  const methods = Object.values(document.paths).flatMap(path => Object.values(path))
  const operations = methods.flatMap(({ operationId }) => operationId ?? [])
  assert.ok(operations.length > 100)
  const env = { ...environment(), JSON_VALIDATOR_CACHE_PATH: folder }
  const { stdout } = await run('perl', ['client.pl', ...operations], { cwd: folder, env })
  const expected = { status: 'applied', id: 'p-pl', code: 'not_found', invalid: '/limit', without: [] }
  assert.deepEqual(JSON.parse(stdout), expected)
})

const NAMES = ['Product', 'Contact', 'Order', 'Event', 'Conversion', 'Subscription', 'Movement', 'Problem', 'Customer']

const PYTHON = `
import json, os, urllib.error, urllib.request
from models import problem_from_dict, product_from_dict

def call(method, path, body=None):
    headers = {"authorization": "Bearer " + os.environ["KEY"], "content-type": "application/json", "prefer": "wait=10"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["URL"] + path, data, headers, method=method)
    with urllib.request.urlopen(request) as response:
        return json.load(response)

written = call("POST", "/v1/products", {
    "entityType": "product", "id": "p-py", "sourceUpdatedAt": "2026-01-31T09:30:00Z", "data": {"sku": "PY-1"}})
product = product_from_dict(call("GET", "/v1/products/PY-1"))
try:
    call("GET", "/v1/orders/none")
except urllib.error.HTTPError as error:
    problem = problem_from_dict(json.load(error))
print(json.dumps({"status": written["status"], "id": product.id, "sku": product.data["sku"], "code": problem.code}))
`

test('generated Python types read the responses of the server', async () => {
  const input = new JSONSchemaInput(undefined)
  // For times, the generated code would need a package that is not in Python's standard library.
  const schemas = JSON.parse(JSON.stringify(document.components.schemas), (key, value) =>
    key === 'format' && value === 'date-time' ? undefined : value,
  )
  for (const name of NAMES) {
    const schema = { $ref: `#/components/schemas/${name}`, components: { schemas } }
    await input.addSource({ name, schema: JSON.stringify(schema) })
  }
  const inputData = new InputData()
  inputData.addInput(input)
  const { lines } = await quicktype({ inputData, lang: 'python', rendererOptions: { 'python-version': '3.7' } })
  for (const name of NAMES) assert.ok(lines.includes(`class ${name}:`), name)
  await writeFile(join(folder, 'models.py'), lines.join('\n'))
  await writeFile(join(folder, 'client.py'), PYTHON)
  const { stdout } = await run('python3', ['client.py'], { cwd: folder, env: environment() })
  assert.deepEqual(JSON.parse(stdout), { status: 'applied', id: 'p-py', sku: 'PY-1', code: 'not_found' })
})
