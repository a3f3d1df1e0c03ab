"""Runs in every child before its program: ties the child's life to its parent's, drops root, becomes the program.

Started as `python -I -S launcher.py PARENT SIGNAL UID FOLDER PROGRAM ARGUMENT...` (8 ms). It is a program of its own,
not a `preexec_fn`, because code between fork and exec can deadlock in a process that has threads (grpc has). UID `-`
keeps the user. FOLDER `-` is none; otherwise the program starts in it, and `{folder}` in an argument becomes a path to
it. With a change of user that path needs no permission on the folders above, so that an unprivileged server can keep
its data in a private place, for example below /root.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: str, death_signal: str, uid: str, folder: str, *command: str) -> None:
    path = folder
    if folder != "-":
        os.chdir(folder)
    if uid != "-":
        path = open_folder(folder)
        drop_privileges(int(uid))
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    # After the change of user, which would clear it; before the check, which covers a parent that died meanwhile.
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(death_signal)) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != int(parent):
        sys.exit("the parent is gone")
    os.umask(0o077)
    arguments = [argument.replace("{folder}", path) for argument in command]
    os.execv(arguments[0], arguments)


def open_folder(folder: str) -> str:
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    os.set_inheritable(descriptor, True)
    return f"/proc/self/fd/{descriptor}"


def drop_privileges(uid: int) -> None:
    import pwd

    os.setgroups([])
    os.setgid(pwd.getpwuid(uid).pw_gid)
    os.setuid(uid)


if __name__ == "__main__":
    main(*sys.argv[1:])
