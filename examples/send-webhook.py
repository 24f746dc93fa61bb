"""Sends a signed event to an inbound source. `kontor source create … --signing-secret generate` prints SOURCE_URL, TOKEN and SECRET."""
import hashlib
import hmac
import json
import os
import time
import urllib.request

body = json.dumps({
    "inbound_event_id": "shipment-1",  # an event with the same id is processed once
    "event_type": "order.shipped",
    "payload": {"order_id": "o-1", "carrier": "DHL"},
}).encode()

# The signature covers the time and the body, which prevents changes and later replays.
timestamp = str(int(time.time()))
signature = hmac.new(os.environ["SECRET"].encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()

request = urllib.request.Request(os.environ["SOURCE_URL"], body, {
    "Authorization": "Bearer " + os.environ["TOKEN"],
    "Content-Type": "application/json",
    "x-service-signature": f"t={timestamp},v1={signature}",
})
with urllib.request.urlopen(request) as answer:  # raises unless it is 2xx
    print(answer.read().decode())
