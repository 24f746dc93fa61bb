-- Requests of a traffic file, one a line: method, path, body, separated by tabs. "@@" is replaced by a unique number, "@now@" by the time in
-- seconds.
-- arguments: traffic file, authorization, name of the run, pause of each connection between requests in ms, signing secret
local ffi = require('ffi')
ffi.cdef [[
  const void *EVP_sha256(void);
  unsigned char *HMAC(const void *, const void *, int, const char *, size_t, unsigned char *, unsigned int *);
]]
local lines, run, pause, secret = {}, '', 0, nil
local sent, formatted, digest = 0, {}, ffi.new('unsigned char[32]')

local function signature(body)
  local time = os.time()
  local text = time .. '.' .. body
  -- wrk is linked with libcrypto
  ffi.C.HMAC(ffi.C.EVP_sha256(), secret, #secret, text, #text, digest, nil)
  local hex = ffi.string(digest, 32):gsub('.', function(byte) return string.format('%02x', byte:byte()) end)
  return 't=' .. time .. ',v1=' .. hex
end

function init(args)
  run = args[3]
  pause = tonumber(args[4])
  secret = args[5]
  wrk.headers['Authorization'] = args[2]
  wrk.headers['Content-Type'] = 'application/json'
  for line in io.lines(args[1]) do
    local method, path, body = line:match('^(%S+)\t(%S+)\t(.*)$')
    lines[#lines + 1] = { method, path, body ~= '' and body or nil, line:find('@@', 1, true) ~= nil }
  end
end

function request()
  local place = sent % #lines + 1
  local line = lines[place]
  sent = sent + 1
  if line[4] then
    local number = run .. sent
    local body = line[3] and line[3]:gsub('@[now]*@', { ['@@'] = number, ['@now@'] = os.date('!%Y-%m-%dT%H:%M:%S') })
    if secret then wrk.headers['X-Service-Signature'] = signature(body) end
    return wrk.format(line[1], (line[2]:gsub('@@', number)), nil, body)
  end
  if not formatted[place] then formatted[place] = wrk.format(line[1], line[2], nil, line[3]) end
  return formatted[place]
end

if os.getenv('BENCH_PACED') then
  -- spread, so that connections do not march in step
  function delay() return pause * (0.5 + math.random()) end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f,"maxMs":%f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
