"""What every client of a websocket server shares: connection, sending, reading, failures, record.

A client is a protocol on top of four parts: a `LoopThread` in which sockets live, an `Exchange`
(one sample: its tasks, its first failure, its time cap), a `Link` per socket, a `UnitSender`.
"""
