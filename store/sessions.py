"""HTTP sessions with Hadoop's daemons: no proxies, checked certificates, and what Kerberos needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from store.errors import SettingError

CONNECTIONS = 16


def open_session(address: str, *, certificates: Path | None) -> Any:
    """A session of requests with the daemon at this address, and with nobody in the clear where that is https."""
    import requests
    from requests.adapters import HTTPAdapter

    session = requests.Session()
    session.trust_env = False  # no proxies (they make uploads hang), no .netrc
    if certificates is not None:
        session.verify = str(certificates)
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_connections=CONNECTIONS, pool_maxsize=CONNECTIONS))
    if address.startswith("https:"):
        del session.adapters["http://"]  # nothing that https protects is sent on in the clear
    return session


def kerberos_is_missing(error: ImportError) -> SettingError:
    return SettingError(
        f"yarnstick.store.security = kerberos needs {error.name or error}, which is not installed; "
        f"pip install 'yarnstick[kerberos]', or set it to insecure where HDFS asks nobody who they are"
    )


def principal() -> str | None:
    """Whose Kerberos ticket this process has, in the short form that Hadoop makes of it; None where it has none."""
    try:
        import gssapi

        name = str(gssapi.Credentials(usage="initiate").name)
    except Exception:  # not installed, or one of its errors, of which each of Kerberos's codes has a class
        return None
    return re.split("[/@]", name)[0]


def ticket() -> str:
    """What the Kerberos ticket of this process is like, and what to do."""
    try:
        import gssapi

        lifetime = gssapi.Credentials(usage="initiate").lifetime
    except ImportError:
        return "run kinit, or give a keytab by KRB5_CLIENT_KTNAME"
    except Exception:  # gssapi's errors have a class for each of Kerberos's codes
        return "there is no Kerberos ticket: run kinit, or give a keytab by KRB5_CLIENT_KTNAME"
    if not lifetime:
        return "the Kerberos ticket has expired: run kinit again, or give a keytab by KRB5_CLIENT_KTNAME"
    return "the Kerberos ticket is valid: check that the address has the host name of the NameNode's principal"
