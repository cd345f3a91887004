"""The system-call filter of a confined command, as a BPF program built here: no library is needed (issue G part 3).

Refused whatever the paths are: Unix sockets (the daemon's is one, ATK-05, ATK-07), io_uring (it would go round this filter),
looking into other processes, mounts, namespaces, the kernel's keyrings and its own doors. Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* (linux/audit.h). Any other machine has no filter, and says so."""
_X32_BIT = 0x40000000
"""System calls of the x32 ABI have numbers from here on: none of them is let through."""

# Numbers: (x86_64, aarch64); -1 where the call does not exist there (arch/*/syscall.tbl).
_REFUSED: dict[str, tuple[int, int]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "iopl": (172, -1),
    "ioperm": (173, -1),
}
_ABSENT: dict[str, tuple[int, int]] = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "clone3": (435, 435),  # its flags lie in memory, where no filter sees them; libraries then use `clone`
}
"""Answered as by a kernel that does not have them: programs go another way."""
_CLONE, _UNSHARE, _SOCKET, _IOCTL = (56, 220), (272, 97), (41, 198), (16, 29)
_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_NEWTIME = 0x80
"""In `unshare` only: `clone` uses these bits for a signal."""
_INTERNET = (2, 10)
"""AF_INET, AF_INET6."""
_NETLINK = 16
"""C libraries ask it for the machine's own addresses."""
_TERMINAL_INJECTION = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX: type into somebody's terminal."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def available() -> bool:
    """Whether this machine's system calls are known here."""
    return os.uname().machine in ARCHITECTURES


def program(*, sockets: bool) -> bytes:
    """The filter, as an array of `struct sock_filter`. `sockets`: IPv4 and IPv6 sockets may be made.

    Raises KeyError on a machine that is not `available`.
    """
    machine = os.uname().machine
    at = list(ARCHITECTURES).index(machine)
    refuse = _ERRNO | errno.EPERM
    code = [
        _op(_LOAD, _ARCH_AT),
        _op(_EQUAL, ARCHITECTURES[machine], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER_AT),
    ]
    code += [_op(_AT_LEAST, _X32_BIT, 0, 1), _op(_RETURN, _ERRNO | errno.ENOSYS)]
    for numbers, answer in (
        *((numbers, refuse) for numbers in _REFUSED.values()),
        *((numbers, _ERRNO | errno.ENOSYS) for numbers in _ABSENT.values()),
    ):
        if numbers[at] >= 0:
            code += [_op(_EQUAL, numbers[at], 0, 1), _op(_RETURN, answer)]
    code += _unless_bits(_CLONE[at], _NAMESPACES, refuse)
    code += _unless_bits(_UNSHARE[at], _NAMESPACES | _NEWTIME, refuse)
    code += _when(_IOCTL[at], 1, [*_each(_TERMINAL_INJECTION, refuse), _op(_RETURN, _ALLOW)])
    families = (*_INTERNET, _NETLINK) if sockets else (_NETLINK,)
    code += _when(_SOCKET[at], 0, [*_each(families, _ALLOW), _op(_RETURN, refuse)])
    return b"".join([*code, _op(_RETURN, _ALLOW)])


def load(filter_program: bytes) -> None:
    """Put this process, and all that come from it, under the filter for good. Needs no_new_privs. Raises OSError."""
    memory = ctypes.create_string_buffer(filter_program, len(filter_program))
    described = _Program(len(filter_program) // 8, ctypes.cast(memory, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(described), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the system-call filter was refused: {os.strerror(number)}")


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _each(values: tuple[int, ...], answer: int) -> list[bytes]:
    return [part for value in values for part in (_op(_EQUAL, value, 0, 1), _op(_RETURN, answer))]


def _when(number: int, argument: int, then: list[bytes]) -> list[bytes]:
    """For one system call: load the low half of an argument (both machines are little-endian) and decide. `then` always returns."""
    body = [_op(_LOAD, _ARGUMENTS_AT + 8 * argument), *then]
    return [_op(_EQUAL, number, 0, len(body)), *body]


def _unless_bits(number: int, bits: int, answer: int) -> list[bytes]:
    return _when(number, 0, [_op(_ANY_BIT, bits, 0, 1), _op(_RETURN, answer), _op(_RETURN, _ALLOW)])
