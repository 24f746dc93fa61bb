"""A signed event to an inbound source: SOURCE_URL, TOKEN and SECRET are what `kontor source create … --signing-secret generate` prints."""
import hashlib
import hmac
import json
import os
import time
import urllib.request

body = json.dumps({
    "inbound_event_id": "shipment-1",  # the same id again counts once
    "event_type": "order.shipped",
    "payload": {"order_id": "o-1", "carrier": "DHL"},
}).encode()

# The signature is over the time and the body, so that nobody can change it or send it again tomorrow.
timestamp = str(int(time.time()))
signature = hmac.new(os.environ["SECRET"].encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()

request = urllib.request.Request(os.environ["SOURCE_URL"], body, {
    "Authorization": "Bearer " + os.environ["TOKEN"],
    "Content-Type": "application/json",
    "x-service-signature": f"t={timestamp},v1={signature}",
})
with urllib.request.urlopen(request) as answer:  # raises unless it is 2xx
    print(answer.read().decode())
