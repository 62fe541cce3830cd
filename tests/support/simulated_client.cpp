#include "tests/support/simulated_client.hpp"

namespace ringmaster::test {

simulated_client::simulated_client(simulated_cluster& host) : cluster(host) {
  auto idle = [](caf::event_based_actor*, bool) -> caf::behavior { return {[](atom::flush) {}}; };
  actor_ = cluster.sys.spawn(idle, true);
  auto ready = [&] { return self()->has_behavior(); };
  cluster.run_until(ready);
}

simulated_client::~simulated_client() {
  caf::anon_send_exit(actor_, caf::exit_reason::kill);
}

caf::event_based_actor* simulated_client::self() {
  auto result = dynamic_cast<caf::event_based_actor*>(caf::actor_cast<caf::abstract_actor*>(actor_));
  result->context(nullptr); // it does not run: the unit that ran it last is gone
  return result;
}

namespace {

template <class Request>
void on_stream(Request& request, uint64_t stream) {
  if (stream != 0)
    request.mutable_onstream()->set_value(stream);
}

} // namespace

memcpy_answer simulated_client::copy_in(uint64_t device, uint64_t address, byte_block block, uint64_t stream) {
  gpu_sim::MemcpyRequest request;
  request.mutable_hosttodevice()->mutable_dstdeviceid()->set_value(device);
  request.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(address);
  on_stream(request, stream);
  return ask<gpu_sim::MemcpyResponse, byte_block>(cluster.host, std::move(request), std::move(block));
}

memcpy_answer simulated_client::copy_out(uint64_t device, uint64_t address, uint64_t bytes, uint64_t stream) {
  gpu_sim::MemcpyRequest request;
  request.mutable_devicetohost()->mutable_srcdeviceid()->set_value(device);
  request.mutable_devicetohost()->mutable_srcmemaddr()->set_value(address);
  request.mutable_devicetohost()->set_numbytes(bytes);
  on_stream(request, stream);
  return ask<gpu_sim::MemcpyResponse, byte_block>(cluster.host, std::move(request), byte_block{});
}

answer_ptr<proto::CopyResponse> simulated_client::copy(uint64_t device, uint64_t from, uint64_t to, uint64_t bytes,
                                                       uint64_t stream) {
  proto::CopyRequest request;
  request.mutable_source()->set_value(from);
  request.mutable_destination()->set_value(to);
  request.set_bytes(bytes);
  if (stream != 0)
    request.mutable_on_stream()->set_value(stream);
  return begin<proto::CopyResponse>(device, request);
}

uint64_t simulated_client::default_stream(uint64_t device) {
  auto streams = status(device, 1).error(); // there is no stream 1: the text names those that exist, the default first
  auto at = streams.rfind("it has ");
  REQUIRE(at != std::string::npos);
  return std::stoull(streams.substr(at + 7));
}

uint64_t simulated_client::new_stream(uint64_t device) {
  return call<proto::StreamCreateResponse>(device, proto::StreamCreateRequest{}).stream_id().value();
}

answer_ptr<proto::StreamSynchronizeResponse> simulated_client::synchronize(uint64_t device, uint64_t stream,
                                                                           caf::timespan limit) {
  proto::StreamSynchronizeRequest request;
  request.mutable_stream_id()->set_value(stream);
  request.set_timeout_ns(static_cast<uint64_t>(limit.count()));
  return begin<proto::StreamSynchronizeResponse>(device, request);
}

std::string simulated_client::record(uint64_t device, uint64_t event, uint64_t stream) {
  proto::EventRecordRequest request;
  request.set_event_id(event);
  request.mutable_stream_id()->set_value(stream);
  return call<proto::EventRecordResponse>(device, request).error();
}

std::string simulated_client::wait_event(uint64_t device, uint64_t event, uint64_t stream) {
  proto::EventWaitRequest request;
  request.set_event_id(event);
  request.mutable_stream_id()->set_value(stream);
  return call<proto::EventWaitResponse>(device, request).error();
}

gpu_sim::BeginSendResponse simulated_client::begin_send(uint64_t device, uint64_t address, uint64_t bytes,
                                                        uint32_t to_rank, uint64_t stream) {
  gpu_sim::BeginSendRequest request;
  request.mutable_sendbuffaddr()->set_value(address);
  request.set_numbytes(bytes);
  request.mutable_dstrank()->set_value(to_rank);
  on_stream(request, stream);
  return call<gpu_sim::BeginSendResponse>(device, request);
}

gpu_sim::BeginReceiveResponse simulated_client::begin_receive(uint64_t device, uint64_t transfer, uint64_t address,
                                                              uint64_t bytes, uint32_t from_rank, uint64_t stream) {
  gpu_sim::BeginReceiveRequest request;
  request.mutable_streamid()->set_value(transfer);
  request.mutable_recvbuffaddr()->set_value(address);
  request.set_numbytes(bytes);
  request.mutable_srcrank()->set_value(from_rank);
  on_stream(request, stream);
  return call<gpu_sim::BeginReceiveResponse>(device, request);
}

std::string simulated_client::feed(uint64_t device, uint64_t transfer, const std::string& data) {
  gpu_sim::DataChunk chunk;
  chunk.mutable_streamid()->set_value(transfer);
  chunk.set_data(data);
  return call<gpu_sim::StreamSendResponse>(device, chunk).error();
}

gpu_sim::GetStreamStatusResponse simulated_client::status(uint64_t device, uint64_t stream) {
  gpu_sim::GetStreamStatusRequest request;
  request.mutable_streamid()->set_value(stream);
  return call<gpu_sim::GetStreamStatusResponse>(device, request);
}

gpu_sim::GetStreamStatusResponse simulated_client::ended(uint64_t device, uint64_t stream) {
  for (;;) {
    auto result = status(device, stream);
    if (result.status() != gpu_sim::IN_PROGRESS)
      return result;
    REQUIRE(cluster.step());
  }
}

byte_block counted_bytes(size_t size, int first) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < size; ++i)
    bytes.push_back(static_cast<std::byte>(static_cast<int>(i) + first));
  return byte_block::of(std::move(bytes));
}

std::string text_of(const byte_block& block) {
  auto bytes = block.as<char>();
  return {bytes.begin(), bytes.end()};
}

std::chrono::nanoseconds time_of(simulated_cluster& cluster) {
  return cluster.scheduler.clock().now().time_since_epoch();
}

} // namespace ringmaster::test
