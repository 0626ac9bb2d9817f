#!/usr/bin/python3
"""Mounts a directory so that root is uid 65534 there, as an NFS export with root_squash: root-squash.py SOURCE MOUNTPOINT

The kernel decides what is allowed: each call is made as the one who made it.
"""
import os
import sys

from fusepy import FUSE, FuseOSError, Operations, fuse_get_context


class Squash(Operations):
    def __call__(self, op, path, *args):
        if not hasattr(self, op):
            raise FuseOSError(95)
        uid, gid, _ = fuse_get_context()
        if uid == 0:
            uid = gid = 65534
        os.setegid(gid)
        os.seteuid(uid)
        try:
            return getattr(self, op)(*([sys.argv[1] + path] if isinstance(path, str) else [path]), *args)
        except OSError as error:
            raise FuseOSError(error.errno)
        finally:
            os.seteuid(0)
            os.setegid(0)

    def getattr(self, path, fh=None):
        found = os.lstat(path)
        return {key: getattr(found, key) for key in ("st_mode", "st_uid", "st_gid", "st_nlink", "st_size", "st_mtime")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(path)]

    def mkdir(self, path, mode):
        os.mkdir(path, mode)

    def rmdir(self, path):
        os.rmdir(path)

    def chmod(self, path, mode):
        os.chmod(path, mode)

    def chown(self, path, uid, gid):
        os.lchown(path, uid, gid)

    def create(self, path, mode, fi=None):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def release(self, path, fh):
        os.close(fh)

    def unlink(self, path):
        os.unlink(path)

    def rename(self, old, new):
        os.rename(old, sys.argv[1] + new)


if __name__ == "__main__":
    os.setgroups([])
    FUSE(Squash(), sys.argv[2], foreground=True, nothreads=True, allow_other=True, attr_timeout=0, entry_timeout=0)
