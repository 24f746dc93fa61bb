// The server that test files share in a run of all tests. test/global-setup.ts starts it. It exits when its standard input ends.
import { startServer } from './server.ts'

const server = await startServer({}, {}, { pipelineThread: true })
const { url, databaseUrl } = server
process.stdout.write(`${JSON.stringify({ url, databaseUrl })}\n`)
process.stdin.resume().on('end', () => void server.close())
