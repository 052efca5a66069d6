"""A producer and a consumer of Forebay by the Connect protocol: python connect_worker.py [URL of the HTTP port]"""

import os
import sys

from google.protobuf.duration_pb2 import Duration
from pyqwest import SyncClient, SyncHTTPTransport

from forebay.v1 import queue_pb2 as pb
from forebay.v1.queue_connect import QueueServiceClientSync

NAMESPACE = "default"
TOPIC = "connect-mail"


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7421"
    # FOREBAY_CA names a file of authorities, for https://. FOREBAY_TOKEN is shown with each call.
    authorities, headers = None, {}
    if "FOREBAY_CA" in os.environ:
        with open(os.environ["FOREBAY_CA"], "rb") as file:
            authorities = file.read()
    if "FOREBAY_TOKEN" in os.environ:
        headers["authorization"] = "Bearer " + os.environ["FOREBAY_TOKEN"]

    with SyncHTTPTransport(tls_ca_cert=authorities) as transport:
        queue = QueueServiceClientSync(url, http_client=SyncClient(transport))
        items = [pb.EnqueueItem(topic=TOPIC, payload=b"hello")]
        for result in queue.enqueue(pb.EnqueueRequest(namespace=NAMESPACE, items=items), headers=headers).results:
            if result.HasField("error"):
                raise RuntimeError(result.reason)
            print("stored", result.item_id)
        demands = [pb.TopicDemand(topic=TOPIC, max_items=10)]
        call = pb.DequeueRequest(namespace=NAMESPACE, demands=demands, wait=Duration(seconds=5))
        for item in queue.dequeue(call, headers=headers).items:
            print("handling", item.payload.decode(), "attempt", item.attempt)
            acks = pb.AckRequest(namespace=NAMESPACE, acks=[pb.Ack(receipt=item.receipt)])
            for result in queue.ack(acks, headers=headers).results:
                print("not acked: " + result.reason if result.HasField("error") else "done")


main()
