// Requests that are none, too many or too large, and clients that do not read.
#include "gateway/course/call_registry.hpp"
#include "tests/gateway/served_cluster.hpp"
#include "training/computed/free_memory.hpp"

#include <grpc/health/v1/health.pb.h>
#include <grpc/reflection/v1alpha/reflection.pb.h>

#include <arpa/inet.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// A call with these bytes as its request.
grpc::Status call_with(course_client& client, const std::string& method, const std::string& bytes) {
  const grpc::Slice slice{bytes};
  const grpc::ByteBuffer asked{&slice, 1};
  return client.call<grpc::ByteBuffer>(method, asked).status;
}

namespace wire = grpc::reflection::v1alpha;

/// The answer of the reflection service to one request.
wire::ServerReflectionResponse reflected(course_client& client, const wire::ServerReflectionRequest& asked) {
  struct asker : grpc::ClientBidiReactor<wire::ServerReflectionRequest, wire::ServerReflectionResponse> {
    void OnDone(const grpc::Status& status) override { done.set_value(status.ok()); }
    wire::ServerReflectionResponse answer;
    std::promise<bool> done;
  } run;
  grpc::ClientContext context;
  grpc::TemplatedGenericStub<wire::ServerReflectionRequest, wire::ServerReflectionResponse>{client.channel()}
    .PrepareBidiStreamingCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", {}, &run);
  run.StartRead(&run.answer);
  run.StartWriteLast(&asked, {});
  run.StartCall();
  CHECK(run.done.get_future().get());
  return run.answer;
}

/// Data of any size that repeats one buffer, whose size divides no piece of a message: a piece that is missing or at
/// another place shows.
class repeated_data {
public:
  repeated_data() : buffer_(1'048'583, '\0') {
    uint32_t x = 1;
    for (auto& byte : buffer_)
      byte = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  }

  /// `before`, and then this many bytes, the first of which is that of place `first`. The buffer must outlive the
  /// message.
  grpc::ByteBuffer message(const std::string& before, uint64_t bytes, uint64_t first = 0) const {
    std::vector<grpc::Slice> slices{grpc::Slice{before}};
    for (uint64_t at = 0; at < bytes;) {
      const auto from = (first + at) % buffer_.size();
      const auto run = std::min<uint64_t>(buffer_.size() - from, bytes - at);
      slices.emplace_back(buffer_.data() + from, run, grpc::Slice::STATIC_SLICE);
      at += run;
    }
    return {slices.data(), slices.size()};
  }

  /// Whether a message ends with this many bytes, the first of which is that of place `first`.
  bool ends(const grpc::ByteBuffer& message, uint64_t bytes, uint64_t first = 0) const {
    std::vector<grpc::Slice> slices;
    if (message.Length() < bytes || !message.Dump(&slices).ok())
      return false;
    uint64_t skipped = message.Length() - bytes, at = first;
    for (auto& slice : slices) {
      auto* next = slice.begin() + std::min<uint64_t>(skipped, slice.size());
      skipped -= std::min<uint64_t>(skipped, slice.size());
      while (next != slice.end()) {
        const auto from = at % buffer_.size();
        const auto run = std::min<uint64_t>(static_cast<uint64_t>(slice.end() - next), buffer_.size() - from);
        if (std::memcmp(next, buffer_.data() + from, run) != 0)
          return false;
        next += run;
        at += run;
      }
    }
    return at == first + bytes;
  }

private:
  std::string buffer_;
};

/// The start of a message within a message: field 1, and its size.
std::string field_one_of(uint64_t bytes) {
  uint8_t text[16];
  text[0] = 1 << 3 | 2;
  const auto* end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(bytes, text + 1);
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(end - text)};
}

/// What precedes the data of a copy to a device.
std::string before_data(uint64_t device, uint64_t address, uint64_t bytes) {
  course::MemcpyHostToDeviceRequest to;
  to.mutable_dstdeviceid()->set_value(device);
  to.mutable_dstmemaddr()->set_value(address);
  const auto inner = to.SerializeAsString() + field_one_of(bytes);
  return field_one_of(inner.size() + bytes) + inner;
}

/// A raw connection.
int connected(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(port);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0);
  return fd;
}

} // namespace

TEST_CASE("limits: bytes that are no request are refused") {
  served_cluster served;
  auto client = served.client_of();
  const std::string garbage{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10};
  for (auto method : {"CommInit", "GetCommStatus", "GroupStart", "GroupEnd", "AllReduceRing", "AllReduce",
                      "NaiveAllReduce", "Memcpy", "CommDestroy", "CommFinalize", "CommRemoveDevice"})
    CHECK_MESSAGE(call_with(client, std::string{"GPUCoordinator/"} + method, garbage).error_code()
                    == grpc::INVALID_ARGUMENT,
                  method);
  CHECK(client.comm_init(1).success());
}

TEST_CASE("limits: metadata that is no number, and a header beyond its limit") {
  served_cluster served;
  auto client = served.client_of();
  const course::GetDeviceMetadataRequest asked;
  auto with = [&](const std::string& name, const std::string& value) {
    return client
      .call<course::GetDeviceMetadataResponse>("GPUDevice/GetDeviceMetadata", asked, course_client::usual_limit,
                                               {{name, value}})
      .status.error_code();
  };
  CHECK(with("device-id", "first") == grpc::INVALID_ARGUMENT);
  CHECK(with("streamid", "-1") == grpc::INVALID_ARGUMENT);
  CHECK(with("device-id", "99") == grpc::NOT_FOUND);
  CHECK(with("other", std::string(100'000, 'x')) == grpc::RESOURCE_EXHAUSTED);
  CHECK(served.client_of().comm_init(1).success());
}

TEST_CASE("limits: a message beyond its limit") {
  served_cluster served{"[lab]\naddress = 127.0.0.1:0\nmessage-max = 1MiB\n", 1, {"--device.memory-bytes=4MiB"}};
  auto client = served.client_of();
  const auto made = client.comm_init(1);
  const auto device = made.devices(0).deviceid().value(), low = made.devices(0).minmemaddr().value();
  client.copy_to_device(device, low, std::vector<char>(1 << 20, 'x'));
  CHECK(client.copy_to_host<char>(device, low, 1 << 20) == std::vector<char>(1 << 20, 'x'));
  CHECK(client
          .call<course::MemcpyResponse>("GPUCoordinator/Memcpy",
                                        course_client::to_device(device, low, std::string(2 << 20, 'x')))
          .status_code()
        == grpc::RESOURCE_EXHAUSTED);
  CHECK(client.call<course::MemcpyResponse>("GPUCoordinator/Memcpy", course_client::to_host(device, low, (1 << 20) + 1))
          .status_code()
        == grpc::INVALID_ARGUMENT);
}

TEST_CASE("limits: a client that takes only small messages gets no large one, and is served further") {
  served_cluster served{lab_listener, 1, {"--device.memory-bytes=8MiB"}};
  constexpr int usual_bytes = 4 << 20; // gRPC's own
  course_client client{served.gateway().listeners().front().address, usual_bytes};
  const auto made = client.comm_init(1);
  const auto device = made.devices(0).deviceid().value(), low = made.devices(0).minmemaddr().value();
  CHECK(client.call<course::MemcpyResponse>("GPUCoordinator/Memcpy", course_client::to_host(device, low, 5 << 20))
          .status_code()
        == grpc::RESOURCE_EXHAUSTED);
  CHECK(client.copy_to_host<char>(device, low, 3 << 20).size() == 3 << 20);
}

TEST_CASE("limits: a message with 1 GiB of data, either way, and a byte more") {
  constexpr uint64_t bytes = 1ull << 30;
  constexpr uint64_t needed = 6 * bytes; // the memory of the device, and messages on their way
  std::error_code ignored;
  if (training::free_memory() < needed
      || std::filesystem::space("/dev/shm", ignored).available < bytes + (bytes >> 3)) {
    MESSAGE("skipped: 6 GiB of memory are not free, or 1.1 GiB in /dev/shm");
    return;
  }
  served_cluster served{lab_listener, 2, {"--device.memory-bytes=1GiB"}};
  auto client = served.client_of();
  const auto made = client.comm_init(2);
  const auto device = made.devices(0).deviceid().value(), low = made.devices(0).minmemaddr().value();
  const repeated_data data;

  constexpr uint64_t stream = 77;
  const course_client::metadata target{{"device-id", std::to_string(device)}};
  course::BeginReceiveRequest receive;
  receive.mutable_streamid()->set_value(stream);
  receive.mutable_recvbuffaddr()->set_value(low);
  receive.set_numbytes(bytes);
  receive.mutable_srcrank()->set_value(1);
  CHECK(client.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive, course_client::usual_limit, target)
          .answer()
          .initiated());
  course::DataChunk chunk;
  chunk.mutable_streamid()->set_value(stream);
  CHECK(
    client.stream_send_bytes(data.message(chunk.SerializeAsString() + field_one_of(bytes), bytes)).answer().success());

  {
    const auto all = client.call<grpc::ByteBuffer>("GPUCoordinator/Memcpy", course_client::to_host(device, low, bytes));
    REQUIRE_MESSAGE(all.ok(), all.status.error_message());
    CHECK(data.ends(all.value, bytes));
  }
  CHECK(client.call<course::MemcpyResponse>("GPUCoordinator/Memcpy", course_client::to_host(device, low, bytes + 1))
          .status_code()
        == grpc::INVALID_ARGUMENT);

  constexpr uint64_t shift = 5; // other bytes than are there
  CHECK(client
          .call<course::MemcpyResponse>("GPUCoordinator/Memcpy",
                                        data.message(before_data(device, low, bytes), bytes, shift))
          .answer()
          .hosttodevice()
          .success());
  constexpr uint64_t sample_bytes = 64 << 10, samples = 16;
  for (uint64_t i = 0; i <= samples; ++i) {
    const auto at = (bytes - sample_bytes) / samples * i;
    const auto sample = client.call<grpc::ByteBuffer>("GPUCoordinator/Memcpy",
                                                      course_client::to_host(device, low + at, sample_bytes));
    REQUIRE(sample.ok());
    CHECK(data.ends(sample.value, sample_bytes, at + shift));
  }
}

TEST_CASE("limits: calls beyond their number") {
  served_cluster served{"[lab]\naddress = 127.0.0.1:0\ncalls-max = 1\n"};
  auto client = served.client_of(), second = served.client_of();
  const auto made = client.comm_init(2);
  served.hang_in_collective(made.devices(1).deviceid().value(), std::chrono::seconds{3});
  course::AllReduceRingRequest asked;
  asked.set_commid(made.commid());
  asked.set_count(1);
  auto pending = std::async(std::launch::async, [&] {
    for (const auto until = std::chrono::steady_clock::now() + course_client::usual_limit;;)
      if (auto result = client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", asked);
          result.code != "too_many" || std::chrono::steady_clock::now() > until)
        return result; // CommInit ends a moment after its client has the answer
  });
  auto user = served.user();
  for (const auto end = std::chrono::steady_clock::now() + course_client::usual_limit;
       user.members(communicator_id{made.commid()})->operationsinflight() == 0
       && std::chrono::steady_clock::now() < end;) {
  }
  const auto refused = second.call<course::HeartbeatResponse>("GPUCoordinator/Heartbeat", course::HeartbeatRequest{});
  CHECK(refused.status_code() == grpc::RESOURCE_EXHAUSTED);
  CHECK(refused.code == "too_many");
  CHECK(pending.get().ok());
  const auto until = std::chrono::steady_clock::now() + course_client::usual_limit;
  auto beats = [&] {
    return second.call<course::HeartbeatResponse>("GPUCoordinator/Heartbeat", course::HeartbeatRequest{}).ok();
  };
  bool served_again = beats(); // a call ends a moment after its client has the answer
  while (!served_again && std::chrono::steady_clock::now() < until)
    served_again = beats();
  CHECK(served_again);
}

TEST_CASE("limits: the bytes under way at a listener are those of its calls' present messages") {
  const auto registry = std::make_shared<gateway::call_registry>(2, 100);
  auto one = *registry->admit(), other = *registry->admit();
  CHECK(code_of(registry->admit().error()) == errc::too_many);
  CHECK_FALSE(one->hold(60));
  CHECK(code_of(other->hold(41)) == errc::too_many);
  CHECK_FALSE(other->hold(40));
  CHECK(code_of(one->hold(61)) == errc::too_many);
  CHECK_FALSE(one->hold(0)); // the first chunk is delivered
  CHECK_FALSE(other->reserve(60));
  CHECK(code_of(one->reserve(1)) == errc::too_many);
  other.reset();
  CHECK_FALSE(one->reserve(100));
}

TEST_CASE("limits: connections that say nothing, or nonsense, disturb no other") {
  served_cluster served;
  const auto port = served.gateway().listeners().front().address.port;
  std::vector<int> open;
  for (int i = 0; i < 50; ++i) {
    open.push_back(connected(port));
    if (i % 2 == 0) {
      const std::string nonsense = "GET / HTTP/1.1\r\n\r\n" + std::string(5000, '\xee');
      CHECK(::send(open.back(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL) != 0);
    }
  }
  auto client = served.client_of();
  CHECK(client.comm_init(1).success());
  for (auto fd : open)
    ::close(fd);
}

TEST_CASE("limits: a client that does not read its answers slows no other") {
  served_cluster served{lab_listener, 1, {"--device.memory-bytes=16MiB"}};
  auto client = served.client_of();
  const auto made = client.comm_init(1);
  const auto device = made.devices(0).deviceid().value(), low = made.devices(0).minmemaddr().value();
  const auto asked = course_client::to_host(device, low, 16 << 20);
  struct never_reads : grpc::ClientBidiReactor<course::MemcpyRequest, course::MemcpyResponse> {
    void OnDone(const grpc::Status&) override { done.set_value(); }
    grpc::ClientContext context;
    std::promise<void> done;
  };
  constexpr size_t clients = 8;
  std::vector<course_client> silent_clients;
  std::deque<never_reads> silent(clients);
  for (auto& call : silent) {
    silent_clients.push_back(served.client_of());
    grpc::TemplatedGenericStub<course::MemcpyRequest, course::MemcpyResponse>{silent_clients.back().channel()}
      .PrepareBidiStreamingCall(&call.context, "/gpu_sim.GPUCoordinator/Memcpy", {}, &call);
    call.StartWriteLast(&asked, {});
    call.AddHold();
    call.StartCall();
  }
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i)
    CHECK(client.copy_to_host<double>(device, low, 16).size() == 16);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds{5});
  for (auto& call : silent) {
    call.context.TryCancel();
    call.RemoveHold();
    call.done.get_future().wait();
  }
}

TEST_CASE("limits: three hundred clients, each on a connection of its own") {
  served_cluster served{lab_listener, 2};
  const auto made = served.client_of().comm_init(2);
  std::vector<std::unique_ptr<course_client>> clients;
  for (int i = 0; i < 300; ++i)
    clients.push_back(std::make_unique<course_client>(served.client_of()));
  course::GetCommStatusRequest asked;
  asked.set_commid(made.commid());
  constexpr size_t threads = 8;
  std::vector<std::future<size_t>> running;
  for (size_t t = 0; t < threads; ++t)
    running.push_back(std::async(std::launch::async, [&, t] {
      size_t good = 0;
      for (size_t i = t; i < clients.size(); i += threads)
        good += clients[i]->call<course::GetCommStatusResponse>("GPUCoordinator/GetCommStatus", asked).ok() ? 1 : 0;
      return good;
    }));
  size_t good = 0;
  for (auto& x : running)
    good += x.get();
  CHECK(good == clients.size());
}

TEST_CASE("limits: the health service answers") {
  served_cluster served;
  grpc::health::v1::HealthCheckRequest asked;
  for (auto service : {"", "gpu_sim.GPUCoordinator", "gpu_sim.GPUDevice"}) {
    asked.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    grpc::ClientContext context;
    std::promise<grpc::Status> done;
    auto client = served.client_of();
    grpc::TemplatedGenericStub<grpc::health::v1::HealthCheckRequest, grpc::health::v1::HealthCheckResponse>{
      client.channel()}
      .UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &asked, &response,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
    CHECK(done.get_future().get().ok());
    CHECK(response.status() == grpc::health::v1::HealthCheckResponse::SERVING);
  }
}

TEST_CASE("limits: reflection shows the lab's package and field numbers") {
  served_cluster served;
  auto client = served.client_of();
  wire::ServerReflectionRequest asked;
  asked.set_list_services("");
  CHECK(reflected(client, asked).list_services_response().service(0).name() == "gpu_sim.GPUCoordinator");
  asked.set_file_containing_symbol("gpu_sim.GPUCoordinator");
  const auto found = reflected(client, asked).file_descriptor_response().file_descriptor_proto(0);
  google::protobuf::FileDescriptorProto file;
  REQUIRE(file.ParseFromString(found));
  CHECK(file.package() == "gpu_sim");
  CHECK(file.service_size() == 2);
  for (auto& method : file.service(0).method())
    CHECK(method.input_type().starts_with(".gpu_sim."));
  asked.set_file_by_filename("gpu_sim.proto");
  CHECK(reflected(client, asked).file_descriptor_response().file_descriptor_proto(0) == found);
  asked.set_file_containing_symbol("ringmaster.proto.Record");
  CHECK(reflected(client, asked).error_response().error_code() == grpc::NOT_FOUND);
}
