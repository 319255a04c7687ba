"""Before anything of ours is submitted to YARN: what earlier runs left there is ended, if it is ours."""

from __future__ import annotations

import logging
import os
from pwd import getpwuid

from pipeline.opening import open_resource_manager
from pipeline.settings import Settings
from store.sessions import principal
from yarn.submission import end_orphans

log = logging.getLogger("luigi-interface.yarnstick")


def end_what_is_left(settings: Settings) -> None:
    for told in end_orphans(open_resource_manager(settings), user=name_on_yarn(settings)):
        log.info("%s", told)


def name_on_yarn(settings: Settings) -> str:
    """As whom Hadoop's own clients submit for us, which are not told of yarnstick.store.user."""
    if settings.store.security == "kerberos" and (named := principal()):
        return named
    return os.environ.get("HADOOP_USER_NAME") or getpwuid(os.getuid()).pw_name  # whatever $USER says
