#!/usr/bin/env python3
"""A client of another form of the course protocol (other_form.proto): other_client.py STUBS COORDINATOR DEVICE DEVICE.

STUBS is the directory of the generated modules. Prints what it has received."""
import struct
import sys

sys.path.insert(0, sys.argv[1])

import grpc  # noqa: E402
import other_form_pb2 as pb  # noqa: E402
import other_form_pb2_grpc as stubs  # noqa: E402

LIMIT_S = 20
ADDRESS = pb.MemAddr(value=0x1000)  # as such clients have it in their source


def main():
    coordinator, devices = sys.argv[2], sys.argv[3:]
    channel = grpc.insecure_channel(coordinator)
    client = stubs.GPUCoordinatorStub(channel)
    made = client.CommInit(pb.CommInitRequest(numDevices=len(devices), deviceAddresses=devices), timeout=LIMIT_S)
    print("devices:", *[f"{x.deviceId.value} at {x.minMemAddr.value:#x}" for x in made.devices])
    status = client.GetCommStatus(pb.GetCommStatusRequest(commId=made.commId), timeout=LIMIT_S).status
    print("before:", pb.Status.Name(status))

    values = [1.5, 2.5, 3.5]
    data = struct.pack("<3f", *values)
    for device in made.devices:
        copy = pb.MemcpyHostToDeviceRequest(hostSrcData=data, dstDeviceId=device.deviceId, dstMemAddr=ADDRESS)
        client.Memcpy(pb.MemcpyRequest(hostToDevice=copy), timeout=LIMIT_S)
    request = pb.AllReduceRingRequest(commId=made.commId, count=len(data), op=pb.SUM)
    print("all-reduce:", client.AllReduceRing(request, timeout=LIMIT_S).success)
    naive = pb.NaiveAllReduceRequest(commId=made.commId, dataSize=len(data), latencyMs=5)
    print("naive:", client.NaiveAllReduce(naive, timeout=LIMIT_S).success)
    status = client.GetCommStatus(pb.GetCommStatusRequest(commId=made.commId), timeout=LIMIT_S).status
    print("after:", pb.Status.Name(status))
    for device in made.devices:
        copy = pb.MemcpyDeviceToHostRequest(srcDeviceId=device.deviceId, srcMemAddr=ADDRESS, numBytes=len(data))
        back = client.Memcpy(pb.MemcpyRequest(deviceToHost=copy), timeout=LIMIT_S).deviceToHost.dstData
        print("values:", *struct.unpack("<3f", back))

    for what, call, argument in (
        ("a reduction without a name", client.AllReduceRing, pb.AllReduceRingRequest(commId=made.commId, count=4)),
        ("an unknown method", client.Broadcast, pb.CommDestroyRequest(commId=made.commId)),
        ("an unknown communicator", client.CommDestroy, pb.CommDestroyRequest(commId=99)),
    ):
        try:
            call(argument, timeout=LIMIT_S)
            print(f"{what}: no error")
        except grpc.RpcError as error:
            code = dict(error.trailing_metadata()).get("ringmaster-code", "no code")
            print(f"{what}: {error.code().name}, {code}")
    print("destroyed:", client.CommDestroy(pb.CommDestroyRequest(commId=made.commId), timeout=LIMIT_S).success)


main()
