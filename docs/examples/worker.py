"""A producer and a consumer of Forebay: python worker.py [host:port]"""

import os
import sys
import time
import uuid

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2

from forebay.v1 import queue_pb2 as pb
from forebay.v1 import queue_pb2_grpc

NAMESPACE = "default"
TOPIC = "python-mail"
REPEATABLE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)


def connect(address):
    """A channel: with TLS if FOREBAY_CA names a file of authorities, and with the token in FOREBAY_TOKEN."""
    if "FOREBAY_CA" not in os.environ:
        return grpc.insecure_channel(address)
    with open(os.environ["FOREBAY_CA"], "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    if "FOREBAY_TOKEN" in os.environ:
        token = grpc.access_token_call_credentials(os.environ["FOREBAY_TOKEN"])
        credentials = grpc.composite_channel_credentials(credentials, token)
    return grpc.secure_channel(address, credentials)


def repeated(call, request, timeout=30, attempts=8):
    """Makes a call, and retries it while the server is unreachable or overloaded."""
    for attempt in range(attempts):
        try:
            # wait_for_ready: wait for a server that is still starting.
            return call(request, timeout=timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            if error.code() not in REPEATABLE or attempt + 1 == attempts:
                raise
            time.sleep(min(0.5 * 2**attempt, 10))


def why(status):
    """The stable reason of one member's error."""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return info.reason
    return status.message


def produce(queue, payloads):
    request = pb.EnqueueRequest(
        namespace=NAMESPACE,
        # Makes the call safe to retry: items that were stored are not stored twice.
        request_id=str(uuid.uuid4()),
        items=[pb.EnqueueItem(topic=TOPIC, priority=5, payload=payload) for payload in payloads],
    )
    for result in repeated(queue.Enqueue, request).results:
        if result.HasField("error"):
            raise RuntimeError(why(result.error))
        print("stored", result.item_id)


def handle(item):
    print("handling", item.payload.decode(), "attempt", item.attempt)


def reason_of(error):
    """The text of an error, as a server takes it: the names of files may have bytes that are not UTF-8."""
    text = f"{type(error).__name__}: {error}"
    # A server keeps 1 KiB, and cuts what is longer.
    return text[:1024].encode("utf-8", "backslashreplace").decode("utf-8")


def settled(what, results):
    """Looks at each result of an ack or a nack. Returns how many were done."""
    done = 0
    for result in results:
        # LEASE_LOST: the handler took too long, or the answer to an earlier call was lost.
        if result.HasField("error"):
            print(f"not {what}:", why(result.error))
        else:
            done += 1
            if result.delay_cut:
                print(f"{what}, and tried again earlier: the item expires")
    return done


def consume(queue, number):
    done = 0
    while done < number:
        answer = repeated(
            queue.Dequeue,
            pb.DequeueRequest(
                namespace=NAMESPACE,
                demands=[pb.TopicDemand(topic=TOPIC, max_items=10)],
                wait=Duration(seconds=10),
            ),
        )
        acks, nacks = [], []
        for item in answer.items:
            try:
                handle(item)
                acks.append(pb.Ack(receipt=item.receipt))
            except Exception as error:
                delay = Duration(seconds=5)
                nacks.append(pb.Nack(receipt=item.receipt, delay=delay, reason=reason_of(error)))
        if acks:
            results = repeated(queue.Ack, pb.AckRequest(namespace=NAMESPACE, acks=acks)).results
            done += settled("acked", results)
        if nacks:
            results = repeated(queue.Nack, pb.NackRequest(namespace=NAMESPACE, nacks=nacks)).results
            settled("nacked", results)


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7420"
    with connect(address) as channel:
        queue = queue_pb2_grpc.QueueServiceStub(channel)
        produce(queue, [b"first", b"second", b"third"])
        consume(queue, 3)
        print("done")


main()
