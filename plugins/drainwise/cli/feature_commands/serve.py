"""`drainwise features serve`: the keys below a directory over http or https."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import sys
from collections.abc import Callable

from drainwise.facts.errors import UsageError

Actions = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it


def add_serve(actions: Actions[argparse.ArgumentParser], port: Callable[[str], int]) -> None:
    """Add the sub-command; `port` reads one."""
    text = "serve the directories below DIR over http or https, read-only"
    serve = actions.add_parser("serve", help=text, description=text)
    serve.add_argument("root", metavar="DIR")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=port, default=0, help="port (default: a free one, which is printed)")
    serve.add_argument("--certificate", metavar="FILE", help="serve https: the certificate with its chain, PEM")
    serve.add_argument("--key", metavar="FILE", help="the certificate's private key, PEM (default: in the same file)")


def serve(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from drainwise.features.serve import FeatureServer, tls_context

    if args.key and not args.certificate:
        raise UsageError("--key without --certificate: expected both, or the key in the certificate's file")
    context = tls_context(args.certificate, args.key) if args.certificate else None
    with FeatureServer(args.root, args.host, args.port, context) as server:
        if context is None and not ipaddress.ip_address(server.server_address[0]).is_loopback:
            print("drainwise: http beyond this machine: tokens can be read on the way (--certificate)", file=sys.stderr)
        print(f"serving {server.root} at {server.url} (stop with Ctrl-C)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0
