// The lab's two parts as a client of its own: `course_lab_client COORDINATOR DEVICE DEVICE`, each HOST:PORT. It knows
// gpu_sim.proto and nothing of Ringmaster. Prints what it has received.
#include <gpu_sim.grpc.pb.h>

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using numbers = std::vector<double>;

std::string bytes_of(const numbers& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

void print(const char* what, const std::string& bytes) {
  numbers values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  std::printf("%s:", what);
  for (auto x : values)
    std::printf(" %g", x);
  std::printf("\n");
}

void check(const grpc::Status& status, const char* call) {
  if (status.ok())
    return;
  std::printf("%s: %d %s\n", call, status.error_code(), status.error_message().c_str());
  std::exit(1);
}

/// A context with the deadline of one call.
struct limited_context : grpc::ClientContext {
  limited_context() { set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{20}); }
};

template <class Stub>
std::unique_ptr<Stub> connect(const char* where,
                              std::unique_ptr<Stub> (*make)(const std::shared_ptr<grpc::ChannelInterface>&,
                                                            const grpc::StubOptions&)) {
  return make(grpc::CreateChannel(where, grpc::InsecureChannelCredentials()), {});
}

class lab_client {
public:
  explicit lab_client(const char* where)
    : coordinator_(connect<gpu_sim::GPUCoordinator::Stub>(where, &gpu_sim::GPUCoordinator::NewStub)) {}

  gpu_sim::CommInitResponse comm_init(uint32_t devices) {
    gpu_sim::CommInitRequest request;
    request.set_numdevices(devices);
    gpu_sim::CommInitResponse response;
    limited_context context;
    check(coordinator_->CommInit(&context, request, &response), "CommInit");
    return response;
  }

  void copy_to_device(const gpu_sim::DeviceMetadata& device, const numbers& values) {
    gpu_sim::MemcpyRequest request;
    auto& to = *request.mutable_hosttodevice();
    to.set_hostsrcdata(bytes_of(values));
    *to.mutable_dstdeviceid() = device.deviceid();
    *to.mutable_dstmemaddr() = device.minmemaddr();
    gpu_sim::MemcpyResponse response;
    limited_context context;
    check(coordinator_->Memcpy(&context, request, &response), "Memcpy");
  }

  std::string copy_to_host(const gpu_sim::DeviceMetadata& device, size_t count) {
    gpu_sim::MemcpyRequest request;
    auto& from = *request.mutable_devicetohost();
    *from.mutable_srcdeviceid() = device.deviceid();
    *from.mutable_srcmemaddr() = device.minmemaddr();
    from.set_numbytes(count * sizeof(double));
    gpu_sim::MemcpyResponse response;
    limited_context context;
    check(coordinator_->Memcpy(&context, request, &response), "Memcpy");
    return response.devicetohost().dstdata();
  }

  /// GroupStart, AllReduceRing, GroupEnd, and GetCommStatus until it has ended.
  void all_reduce(const gpu_sim::CommInitResponse& made, size_t count) {
    limited_context starts, reduces, ends;
    gpu_sim::GroupStartRequest start;
    start.set_commid(made.commid());
    gpu_sim::GroupStartResponse started;
    check(coordinator_->GroupStart(&starts, start, &started), "GroupStart");
    gpu_sim::AllReduceRingRequest request;
    request.set_commid(made.commid());
    request.set_count(count);
    request.set_op(gpu_sim::SUM);
    for (int rank = 0; rank < made.devices_size(); ++rank)
      (*request.mutable_memaddrs())[static_cast<uint32_t>(rank)] = made.devices(rank).minmemaddr();
    gpu_sim::AllReduceRingResponse reduced;
    check(coordinator_->AllReduceRing(&reduces, request, &reduced), "AllReduceRing");
    gpu_sim::GroupEndRequest end;
    end.set_commid(made.commid());
    gpu_sim::GroupEndResponse ended;
    check(coordinator_->GroupEnd(&ends, end, &ended), "GroupEnd");
    gpu_sim::GetCommStatusRequest ask;
    ask.set_commid(made.commid());
    gpu_sim::GetCommStatusResponse status;
    do {
      limited_context context;
      check(coordinator_->GetCommStatus(&context, ask, &status), "GetCommStatus");
    } while (status.status() == gpu_sim::IN_PROGRESS);
    std::printf("status: %s\n", gpu_sim::Status_Name(status.status()).c_str());
  }

private:
  std::unique_ptr<gpu_sim::GPUCoordinator::Stub> coordinator_;
};

/// A transfer from one device to another, as the lab's coordinator orders it, and one from this program.
class device_client {
public:
  explicit device_client(const char* where)
    : device_(connect<gpu_sim::GPUDevice::Stub>(where, &gpu_sim::GPUDevice::NewStub)) {}

  gpu_sim::StreamId begin_send(const gpu_sim::MemAddr& from, size_t bytes, uint32_t to_rank) {
    gpu_sim::BeginSendRequest request;
    *request.mutable_sendbuffaddr() = from;
    request.set_numbytes(bytes);
    request.mutable_dstrank()->set_value(to_rank);
    gpu_sim::BeginSendResponse response;
    limited_context context;
    check(device_->BeginSend(&context, request, &response), "BeginSend");
    return response.streamid();
  }

  void begin_receive(const gpu_sim::StreamId& stream, const gpu_sim::MemAddr& to, size_t bytes, uint32_t from_rank) {
    gpu_sim::BeginReceiveRequest request;
    *request.mutable_streamid() = stream;
    *request.mutable_recvbuffaddr() = to;
    request.set_numbytes(bytes);
    request.mutable_srcrank()->set_value(from_rank);
    gpu_sim::BeginReceiveResponse response;
    limited_context context;
    check(device_->BeginReceive(&context, request, &response), "BeginReceive");
  }

  void stream_send(const gpu_sim::StreamId& stream, const std::string& bytes) {
    limited_context context;
    gpu_sim::StreamSendResponse response;
    auto writer = device_->StreamSend(&context, &response);
    constexpr size_t chunk_bytes = 16;
    for (size_t i = 0; i < bytes.size(); i += chunk_bytes) {
      gpu_sim::DataChunk chunk;
      chunk.set_data(bytes.substr(i, chunk_bytes));
      *chunk.mutable_streamid() = stream;
      writer->Write(chunk);
    }
    writer->WritesDone();
    check(writer->Finish(), "StreamSend");
  }

  void await(const gpu_sim::StreamId& stream) {
    gpu_sim::GetStreamStatusRequest request;
    *request.mutable_streamid() = stream;
    gpu_sim::GetStreamStatusResponse response;
    do {
      limited_context context;
      check(device_->GetStreamStatus(&context, request, &response), "GetStreamStatus");
    } while (response.status() == gpu_sim::IN_PROGRESS);
    std::printf("stream: %s\n", gpu_sim::Status_Name(response.status()).c_str());
  }

private:
  std::unique_ptr<gpu_sim::GPUDevice::Stub> device_;
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 4)
    return 2;
  lab_client client{argv[1]};
  const auto made = client.comm_init(2);
  const auto &first = made.devices(0), &second = made.devices(1);
  const numbers one{1, 2, 3, 4}, ten{10, 20, 30, 40};
  client.copy_to_device(first, one);
  client.copy_to_device(second, ten);
  client.all_reduce(made, one.size());
  print("part A, rank 0", client.copy_to_host(first, one.size()));
  print("part A, rank 1", client.copy_to_host(second, one.size()));

  device_client source{argv[2]}, target{argv[3]};
  client.copy_to_device(first, one);
  const auto bytes = one.size() * sizeof(double);
  const auto stream = source.begin_send(first.minmemaddr(), bytes, 1);
  target.begin_receive(stream, second.minmemaddr(), bytes, 0);
  target.await(stream);
  print("part B, between devices", client.copy_to_host(second, one.size()));
  gpu_sim::StreamId own;
  own.set_value(4711);
  target.begin_receive(own, second.minmemaddr(), bytes, 0);
  target.stream_send(own, bytes_of(ten));
  target.await(own);
  print("part B, from outside", client.copy_to_host(second, ten.size()));
}
