"""macOS: the Seatbelt profile of a confined command and the words that run it, from the same exposure as on Linux. Pure.

NOT TESTED on a Mac: the tests hold what the text says, not what a kernel makes of it. Level `partial`: no processes of its own, no own
`/tmp`, and what exists can be seen, though not read. `sandbox-exec` is old and marked deprecated, and there is nothing else without
an entitlement. In a profile the last rule that fits decides, and paths are resolved ones; so allowed comes first, then what is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from standfast.process.bubblewrap import Bounds, parents
from standfast.process.exposure import Exposure

PROGRAM = "/usr/bin/sandbox-exec"
"""By absolute path only, like bubblewrap."""
SYSTEM = ("/usr", "/bin", "/sbin", "/System", "/Library", "/Applications/Xcode.app", "/opt", "/private/etc", "/private/var/db/dyld",
          "/private/var/db/timezone", "/private/var/select", "/private/var/db/xcode_select_link")  # fmt: skip
DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/dtracehelper",
    "/dev/fd",
)
ANSWERS_NAMES = "/private/var/run/mDNSResponder"
"""The socket that names are asked by."""
_NUMBERS = ("kern.argmax", "kern.boottime", "kern.hostname", "kern.iossupportversion", "kern.maxfilesperproc", "kern.maxproc",
            "kern.ngroups", "kern.osproductversion", "kern.osrelease", "kern.ostype", "kern.osvariant_status", "kern.osversion",
            "kern.secure_kernel", "kern.sysv.semmni", "kern.usrstack64", "kern.version", "vm.loadavg")  # fmt: skip
"""Of the system. One by one: what reads the arguments and the environment of other processes has no name that could be denied."""
_SERVICES = ("com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership",
             "com.apple.system.notification_center", "com.apple.bsd.dirhelper")  # fmt: skip
"""Who a user id is, and where their temporary files lie."""
_NETWORK_SERVICES = ("com.apple.SystemConfiguration.configd", "com.apple.SystemConfiguration.DNSConfiguration",
                     "com.apple.trustd.agent")  # fmt: skip


def command_line(exposure: Exposure, bounds: Bounds, argv: Sequence[str], *, temporary: str) -> list[str]:
    """The words that run `argv` confined. `temporary`: a directory of the command's own. Paths are resolved."""
    text, paths = profile(exposure, bounds, temporary=temporary)
    named = [word for name, path in paths.items() for word in ("-D", f"{name}={path}")]
    return [PROGRAM, "-p", text, *named, "--", *argv]


def profile(exposure: Exposure, bounds: Bounds, *, temporary: str) -> tuple[str, dict[str, str]]:
    """The profile, and the paths behind its parameters: no path stands in the text, so none can end a string or a rule."""
    paths: dict[str, str] = {}

    def places(each: Iterable[str], kind: str = "subpath") -> str:
        words: list[str] = []
        for path in dict.fromkeys(each):
            name = f"P{len(paths)}"
            paths[name] = path
            words.append(f'({kind} (param "{name}"))')
        return " ".join(words)

    def rule(verdict: str, operations: str, filters: str) -> str:
        return f"({verdict} {operations} {filters})" if filters else ""

    caches = () if bounds.network else exposure.caches
    readable = [*SYSTEM, *exposure.system, *exposure.tools, *caches, *bounds.read]
    writable = [bounds.workspace, temporary, *exposure.write, *bounds.write]
    kept = (*bounds.read_only, *bounds.stand_ins)
    rules = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork)",
        "(allow process-info* signal (target same-sandbox))",
        "(allow ipc-posix-sem ipc-posix-shm* pseudo-tty)",
        f'(allow sysctl-read (sysctl-name-prefix "hw.") {_named("sysctl-name", _NUMBERS)})',
        f"(allow mach-lookup {_named('global-name', (*_SERVICES, *(_NETWORK_SERVICES if bounds.network else ())))})",
        "(allow file-read-metadata)",  # else no path can be resolved
        '(allow file-read* (literal "/"))',
        rule("allow", "file-read*", places((*readable, *writable, *DEVICES))),
        rule("allow", "file-write*", places(writable)),
        rule("allow", "file-write-data file-ioctl", places(DEVICES)),
        '(allow file-read* file-write-data file-ioctl (regex #"^/dev/ttys[0-9]+$"))',
        rule("deny", "file-write*", places(kept)),
        rule(
            "deny", "file-write-unlink", places(sorted(parents((*kept, *exposure.hidden), bounds.workspace)), "literal")
        ),
        rule("deny", "file-read* file-write*", places(path for path in exposure.hidden if path != temporary)),
        rule("allow", "file-read* file-write*", places([temporary])),  # it lies beneath a place of the daemon's
    ]
    if bounds.network:
        rules += [
            "(allow system-socket)",
            "(allow network-outbound (remote ip))",
            "(allow network-inbound network-bind (local ip))",
            rule("allow", "network-outbound", places([ANSWERS_NAMES], "literal")),
        ]
    return "\n".join(one for one in rules if one), paths


def _named(kind: str, names: Iterable[str]) -> str:
    return " ".join(f'({kind} "{name}")' for name in names)
