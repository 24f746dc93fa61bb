// Kontor's browser script, served at /k.js. How to use it: docs/guides/browser.md.
// The server drops whole-line comments and indentation: no block comments, no strings over several lines.
;(() => {
  const early = window.kontor || []
  if (early.loaded) return
  const script = document.currentScript || document.querySelector('script[data-key][src*="k.js"]')
  const { key, host, auto } = script.dataset
  const endpoint = `${(host || new URL(script.src).origin).replace(/\/$/, '')}/v1/track/?key=${encodeURIComponent(key)}`
  const silent = !key || navigator.globalPrivacyControl || /^(1|yes)$/.test(navigator.doNotTrack || window.doNotTrack)
  const sessionMs = 18e5
  const storedLimit = 50
  const queueLimit = 1000
  const isTooLong = userId => userId.length > 255

  // An id starts with the time, and no two ids of a page have the same millisecond. Sorted ids are therefore oldest first.
  let lastTime = 0
  const uid = () => {
    lastTime = Math.max(Date.now(), lastTime + 1)
    const random = crypto.getRandomValues(new Uint8Array(12))
    return lastTime.toString(36) + Array.from(random, byte => (byte + 256).toString(16).slice(1)).join('')
  }

  // Stored state: v (visitor), s (session and its last activity), u (user). In local storage, or cookies, or memory.
  const memory = {}
  let disk
  try {
    disk = window.localStorage
  } catch (_) {}

  const get = name => {
    let value
    try {
      value = disk
        ? disk.getItem(`kontor.${name}`)
        : decodeURIComponent(document.cookie.match(`(?:^|; )kontor_${name}=([^;]+)`)[1])
    } catch (_) {}
    return value || memory[name]
  }

  const set = (name, value) => {
    try {
      if (!disk) {
        // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is too new, and asynchronous
        document.cookie = `kontor_${name}=${encodeURIComponent(value)};path=/;samesite=lax;max-age=${value ? 34e6 : 0}`
      } else if (value) disk.setItem(`kontor.${name}`, value)
      else disk.removeItem(`kontor.${name}`)
    } catch (_) {
      // If the storage is full, remove the old value, which get() would prefer to the new one in memory.
      if (value) set(name, '')
    }
    memory[name] = value
  }

  const reset = () => {
    for (const name of ['v', 's', 'u']) set(name, '')
  }

  // An event leaves the queue when the server has responded, or when newer events need the space. Each event has its own
  // storage entry, so tabs do not overwrite each other. Two tabs, or a beacon and a retry, may send the same event; the
  // server recognizes the duplicate by its event_id.
  let queue = []
  let sending
  let timer
  let failures = 0
  let mustWait

  const onDisk = () =>
    Object.keys(disk || {})
      .filter(name => name.startsWith('kontor.q.'))
      .sort()

  const drop = name => {
    queue = queue.filter(item => item.name !== name)
    if (disk) disk.removeItem(name)
  }

  const enqueue = (id, body) => {
    const name = `kontor.q.${id}.${key}`
    try {
      disk.setItem(name, body)
    } catch (_) {}
    queue.push({ name, body })
    for (const old of onDisk().slice(0, -storedLimit)) disk.removeItem(old)
    if (queue.length > queueLimit) {
      drop(queue[sending ? 1 : 0].name)
      console.error('kontor: The queue is full. The oldest event was dropped.')
    }
    deliver()
  }

  // A string body is sent as text/plain, which needs no preflight. Browsers reject keepalive requests over 64 KiB, and a
  // character may have 3 bytes.
  const post = async body => {
    const abort = new AbortController()
    const patience = setTimeout(() => abort.abort(), 15e3)
    try {
      return await fetch(endpoint, {
        method: 'POST',
        body,
        keepalive: body.length < 21e3,
        credentials: 'omit',
        signal: abort.signal,
      })
    } catch (_) {
      return Response.error()
    } finally {
      clearTimeout(patience)
    }
  }

  const deliver = async () => {
    while (queue.length && !sending && !timer) {
      const item = queue[0]
      sending = item
      const answer = await post(item.body)
      sending = null
      mustWait = answer.status === 429 || answer.status >= 500
      if (answer.status && !mustWait) {
        drop(item.name)
        failures = 0
        continue
      }
      // Move it to the end, so that an event that the server cannot accept does not block the others.
      if (queue[0] === item) queue.push(queue.shift())
      const backOffMs = Math.min(2 ** failures++ * 1e3, 3e5) * (0.5 + Math.random() / 2)
      const retryAfterS = Math.min(answer.headers.get('retry-after'), 86400) || 0
      timer = setTimeout(resume, backOffMs + retryAfterS * 1e3)
    }
  }

  const resume = () => {
    clearTimeout(timer)
    timer = 0
    deliver()
  }

  // The last chance before the page may end; once per event. Requests in flight with keepalive need no beacon.
  const flush = () =>
    mustWait ||
    queue.forEach(item => {
      if (!item.beaconed && (item !== sending || !('keepalive' in Request.prototype)))
        item.beaconed = navigator.sendBeacon(endpoint, item.body)
    })

  // An anchor is not a new page, but a route of a hash router (#/ or #!) is.
  const page = () => location.href.replace(/#(?:[^!/][\s\S]*)?$/, '')
  let current = page()
  let referrer = document.referrer

  const record = (type, data) => {
    const now = Date.now()
    const [session, seen] = (get('s') || '').split('.')
    const event = {
      event_type: type,
      visitor: get('v') || uid(),
      session_id: now - seen < sessionMs ? session : uid(),
      user_id: get('u') || undefined,
      event_id: uid(),
      occurred_at: new Date(now).toISOString(),
      data: Object.assign({ page: page(), referrer, title: document.title }, data),
    }
    const body = JSON.stringify(event)
    set('v', event.visitor)
    set('s', `${event.session_id}.${now}`)
    enqueue(event.event_id, body)
  }

  // Analytics must not break the page: errors are logged, never thrown.
  const safely =
    method =>
    (...args) => {
      try {
        if (!silent) method(...args)
      } catch (error) {
        console.error('kontor:', error)
      }
    }

  const api = {
    loaded: true,
    track: safely(record),
    identify: safely((userId, traits) => {
      if (isTooLong(String(userId))) throw new Error('The user id has more than 255 characters.')
      if (userId) set('u', String(userId))
      record('identify', traits)
    }),
    reset: safely(reset),
    push: safely(call => api[call[0]](...[].slice.call(call, 1))),
  }

  const navigated = safely(() => {
    if (page() === current) return
    referrer = current
    current = page()
    record('page_view')
  })

  const watchPages = () => {
    api.track('page_view')
    ;['pushState', 'replaceState'].forEach(method => {
      const original = history[method]
      history[method] = function (...args) {
        original.apply(this, args)
        navigated()
      }
    })
    addEventListener('popstate', navigated)
    // A page from the back/forward cache does not load again, but the visitor sees it again.
    addEventListener('pageshow', event => event.persisted && api.track('page_view'))
  }

  const start = () => {
    window.kontor = api
    if (silent) {
      if (!key) console.error('kontor: the script tag has no data-key')
      reset()
      onDisk().forEach(drop)
      return
    }
    // Stored by an earlier version. The server rejects every event with such an id.
    if (isTooLong(get('u') || '')) set('u', '')
    queue = onDisk()
      .filter(name => name.endsWith(`.${key}`))
      .map(name => ({ name, body: disk.getItem(name) }))
    deliver()
    addEventListener('pagehide', flush)
    document.addEventListener('visibilitychange', () => document.visibilityState === 'hidden' && flush())
    addEventListener('online', () => mustWait || resume())
    if (auto !== 'false') watchPages()
    ;[].concat(early.q || early).forEach(api.push)
  }

  // A prerendered page has not been seen yet.
  if (document.prerendering) document.addEventListener('prerenderingchange', start, { once: true })
  else start()
})()
