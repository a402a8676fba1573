"""A plain Redlock client on sockets, like many libraries in many languages.

    plain-redlock.py lock   PORTS KEY VALUE TTL_MS   prints "locked" or "refused"
    plain-redlock.py unlock PORTS KEY VALUE          prints how many nodes deleted the key
    plain-redlock.py count  PORTS KEY TURNS COUNTER  adds one to the key COUNTER on the first node,
                                                     TURNS times, in two steps under the lock

Sets the key with SET NX PX on every node, holds the lock if a majority did so, and deletes the key
only if the value is its own.
"""

import random
import socket
import sys
import time

DELETE_OWN = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
)


class Node:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.replies = self.socket.makefile("rb")

    def call(self, *words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        self.socket.sendall(b"".join(parts))
        line = self.replies.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind != b"$":
            return rest.decode()
        if rest == b"-1":
            return None
        return self.replies.read(int(rest) + 2)[:-2].decode()


def lock(nodes, key, value, ttl_ms):
    granted = [node for node in nodes if node.call("SET", key, value, "NX", "PX", ttl_ms) == "OK"]
    if len(granted) > len(nodes) // 2:
        return True
    unlock(nodes, key, value)
    return False


def unlock(nodes, key, value):
    return sum(node.call("EVAL", DELETE_OWN, 1, key, value) for node in nodes)


def count(nodes, key, turns, counter):
    for turn in range(turns):
        value = "python-%d-%d" % (turn, random.getrandbits(64))
        while not lock(nodes, key, value, 30000):
            time.sleep(random.uniform(0.001, 0.01))
        before = int(nodes[0].call("GET", counter) or 0)
        time.sleep(random.uniform(0, 0.002))
        nodes[0].call("SET", counter, before + 1)
        unlock(nodes, key, value)


def main():
    what, ports, key, *rest = sys.argv[1:]
    nodes = [Node(int(port)) for port in ports.split(",")]
    if what == "lock":
        print("locked" if lock(nodes, key, rest[0], int(rest[1])) else "refused")
    elif what == "unlock":
        print(unlock(nodes, key, rest[0]))
    else:
        count(nodes, key, int(rest[0]), rest[1])
        print("counted")


main()
