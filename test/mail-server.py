"""A mail server for tests. Prints one JSON line per accepted message. Options are JSON in the first argument."""

import email.policy
import json
import logging
import ssl
import sys
import threading
import warnings
from email import message_from_bytes

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

options = json.loads(sys.argv[1])
# It warns that a login without TLS is not safe.
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")


def say(value):
    print(json.dumps(value), flush=True)


def authenticate(server, session, envelope, mechanism, data):
    expected = LoginPassword(b"kontor", options["password"].encode())
    # Not handled: the server sends the response.
    return AuthResult(success=data == expected, handled=False)


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if address.startswith("unknown@"):
            return "550 5.1.1 No such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = message_from_bytes(envelope.original_content, policy=email.policy.default)
        say(
            {
                "from": envelope.mail_from,
                "to": envelope.rcpt_tos,
                "headers": [[name, str(value)] for name, value in message.items()],
                "text": message.get_body(("plain",)).get_content(),
                "html": message.get_body(("html",)).get_content(),
                "encrypted": session.ssl is not None,
            }
        )
        return "250 2.0.0 Accepted"


tls = None
if options.get("certificate"):
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(options["certificate"], options["key"])

controller = Controller(
    Handler(),
    hostname="127.0.0.1",
    port=options["port"],
    tls_context=tls,
    **(
        {"authenticator": authenticate, "auth_required": True, "auth_require_tls": False}
        if options.get("password")
        else {}
    ),
)
controller.start()
say("ready")
# Ends with the test that started it.
threading.Thread(target=lambda: (sys.stdin.read(), controller.stop())).start()
