// Transfers between devices and from outside, with devices at addresses of their own and in other dialects.
#include "tests/gateway/served_cluster.hpp"

#include <algorithm>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr auto with_devices = "[lab]\naddress = 127.0.0.1:0\n"
                              "devices = 127.0.0.1:0, 127.0.0.1:0, 127.0.0.1:0\n";
constexpr size_t numbers_count = 100;
const std::vector<double> numbers = [] {
  std::vector<double> result;
  for (size_t i = 0; i < numbers_count; ++i)
    result.push_back(static_cast<double>(i) * 0.5);
  return result;
}();

uint64_t address_of(course_client& device) {
  return device
    .call<course::GetDeviceMetadataResponse>("GPUDevice/GetDeviceMetadata", course::GetDeviceMetadataRequest{})
    .answer()
    .metadata()
    .minmemaddr()
    .value();
}

course::BeginSendRequest send_of(uint64_t address, uint32_t to) {
  course::BeginSendRequest result;
  result.mutable_sendbuffaddr()->set_value(address);
  result.set_numbytes(numbers_count * sizeof(double));
  result.mutable_dstrank()->set_value(to);
  return result;
}

course::BeginReceiveRequest receive_of(uint64_t stream, uint64_t address, uint32_t from) {
  course::BeginReceiveRequest result;
  result.mutable_streamid()->set_value(stream);
  result.mutable_recvbuffaddr()->set_value(address);
  result.set_numbytes(numbers_count * sizeof(double));
  result.mutable_srcrank()->set_value(from);
  return result;
}

int poll_stream(course_client& device, uint64_t stream, int in_progress = 0, const course_client::metadata& with = {}) {
  course::GetStreamStatusRequest request;
  request.mutable_streamid()->set_value(stream);
  for (;;) {
    const int status = device
                         .call<course::GetStreamStatusResponse>("GPUDevice/GetStreamStatus", request,
                                                                course_client::usual_limit, with)
                         .answer()
                         .status();
    if (status != in_progress)
      return status;
  }
}

/// A chunk of the numbers' bytes; `stream` 0: it names none.
course::DataChunk chunk_of(uint64_t stream, size_t from, size_t bytes) {
  course::DataChunk result;
  result.set_data(bytes_of(numbers).substr(from, bytes));
  if (stream != 0)
    result.mutable_streamid()->set_value(stream);
  return result;
}

} // namespace

TEST_CASE("device calls: between two devices, each at its own address") {
  served_cluster served{with_devices};
  auto coordinator = served.client_of();
  auto source = served.client_of_device(0), target = served.client_of_device(1);
  const auto made = coordinator.comm_init(3);
  CHECK(made.devices(0).minmemaddr().value() == address_of(source));
  const auto from = address_of(source), to = address_of(target);
  coordinator.copy_to_device(made.devices(0).deviceid().value(), from, numbers);
  const auto sent = source.call<course::BeginSendResponse>("GPUDevice/BeginSend", send_of(from, 1)).answer();
  CHECK(sent.initiated());
  CHECK(target.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(sent.streamid().value(), to, 0))
          .answer()
          .initiated());
  CHECK(poll_stream(target, sent.streamid().value()) == course::SUCCESS);
  CHECK(poll_stream(source, sent.streamid().value()) == course::SUCCESS);
  CHECK(coordinator.copy_to_host<double>(made.devices(1).deviceid().value(), to, numbers_count) == numbers);
}

TEST_CASE("device calls: a client streams into a posted receive") {
  served_cluster served{with_devices};
  auto coordinator = served.client_of();
  auto target = served.client_of_device(1);
  const auto made = coordinator.comm_init(2);
  const auto to = address_of(target);
  CHECK(target.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(77, to, 0)).ok());
  const auto sent = target.stream_send({chunk_of(77, 0, 300), chunk_of(0, 300, 1), chunk_of(0, 301, 499)});
  CHECK(sent.answer().success());
  CHECK(poll_stream(target, 77) == course::SUCCESS);
  CHECK(coordinator.copy_to_host<double>(made.devices(1).deviceid().value(), to, numbers_count) == numbers);
}

TEST_CASE("device calls: without addresses of devices the metadata names one, and a receive's stream does") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(2);
  const auto to = made.devices(1).minmemaddr().value(), device = made.devices(1).deviceid().value();
  const course_client::metadata target{{"device-id", std::to_string(device)}};
  const auto receive = receive_of(5, to, 0);
  CHECK(client.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive).status_code()
        == grpc::INVALID_ARGUMENT);
  CHECK(client.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive, course_client::usual_limit, target)
          .answer()
          .initiated());
  CHECK(client.stream_send({chunk_of(0, 0, 800)}, {{"streamid", "5"}}).answer().success());
  CHECK(poll_stream(client, 5) == course::SUCCESS);
  CHECK(client.copy_to_host<double>(device, to, numbers_count) == numbers);
}

TEST_CASE("device calls: chunks with the stream as a number, and with a header before the first") {
  served_cluster served{"[lab]\naddress = 127.0.0.1:0\ndevices = 127.0.0.1:0, 127.0.0.1:0\nchunk = header\n"};
  auto coordinator = served.client_of();
  auto target = served.client_of_device(1);
  const auto made = coordinator.comm_init(2);
  const auto to = address_of(target);
  auto check_arrived = [&](uint64_t stream) {
    CHECK(poll_stream(target, stream) == course::SUCCESS);
    CHECK(coordinator.copy_to_host<double>(made.devices(1).deviceid().value(), to, numbers_count) == numbers);
    coordinator.copy_to_device(made.devices(1).deviceid().value(), to, std::vector<double>(numbers_count, 0.0));
  };
  CHECK(target.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(300, to, 0)).ok());
  auto as_number = chunk_of(0, 0, 800);
  as_number.GetReflection()->MutableUnknownFields(&as_number)->AddVarint(2, 300);
  CHECK(target.stream_send({as_number}).answer().success());
  check_arrived(300);
  CHECK(target.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(301, to, 0)).ok());
  auto first = chunk_of(0, 0, 8);
  first.set_data(std::string{"\x2d\x01\0\0\0\0\0\0********", 16} + first.data());
  CHECK(target.stream_send({first, chunk_of(0, 8, 792)}).answer().success());
  check_arrived(301);
}

TEST_CASE("device calls: peers named by device, with numbered devices and a window of addresses") {
  served_cluster served{"[b]\naddress = 127.0.0.1:0\ndevices = 127.0.0.1:0, 127.0.0.1:0\npeer = device\n"
                        "device-ids = 1\nwindow = 0x1000 64K\nstatus = READY, IN_PROGRESS, SUCCESS, FAILED\n"
                        "first-status = READY\n"};
  auto coordinator = served.client_of();
  auto source = served.client_of_device(0), target = served.client_of_device(1);
  course::CommInitRequest request;
  request.set_numdevices(2);
  for (auto& address : served.gateway().listeners().front().devices)
    request.add_deviceaddresses("localhost:" + std::to_string(address.port));
  const auto made = coordinator.call<course::CommInitResponse>("GPUCoordinator/CommInit", request).answer();
  CHECK(made.devices(0).deviceid().value() == 1);
  CHECK(made.devices(1).minmemaddr().value() == 0x1000);
  CHECK(made.devices(1).maxmemaddr().value() == 0x11000);
  coordinator.copy_to_device(1, 0x1000, numbers);
  const auto sent = source.call<course::BeginSendResponse>("GPUDevice/BeginSend", send_of(0x1000, 2)).answer();
  CHECK(target
          .call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(sent.streamid().value(), 0x2000, 1))
          .ok());
  CHECK(poll_stream(target, sent.streamid().value(), 1) == 2);
  auto copy = course_client::to_host(0, 0x2000,
                                     numbers_count * sizeof(double)); // the id is of no matter at its own address
  CHECK(
    numbers_in<double>(target.call<course::MemcpyResponse>("GPUDevice/Memcpy", copy).answer().devicetohost().dstdata())
    == numbers);
}

TEST_CASE("device calls: SetupCommunication without CommInit") {
  served_cluster served{with_devices};
  course::SetupCommunicationRequest setup;
  const auto addresses = served.gateway().listeners().front().devices;
  for (uint32_t rank = 0; rank < addresses.size(); ++rank)
    (*setup.mutable_ranktoaddress())[rank] = text_of(addresses[rank]);
  for (uint32_t rank = 0; rank < addresses.size(); ++rank) {
    setup.mutable_rank()->set_value(rank);
    CHECK(served.client_of_device(rank)
            .call<course::SetupCommunicationResponse>("GPUDevice/SetupCommunication", setup)
            .answer()
            .success());
  }
  auto source = served.client_of_device(2), target = served.client_of_device(0);
  const auto from = address_of(source), to = address_of(target);
  CHECK(
    source.call<course::MemcpyResponse>("GPUDevice/Memcpy", course_client::to_device(0, from, bytes_of(numbers))).ok());
  const auto sent = source.call<course::BeginSendResponse>("GPUDevice/BeginSend", send_of(from, 0)).answer();
  CHECK(target.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(sent.streamid().value(), to, 2))
          .ok());
  CHECK(poll_stream(target, sent.streamid().value()) == course::SUCCESS);
  auto copy = course_client::to_host(0, to, numbers_count * sizeof(double));
  CHECK(
    numbers_in<double>(target.call<course::MemcpyResponse>("GPUDevice/Memcpy", copy).answer().devicetohost().dstdata())
    == numbers);
}

TEST_CASE("device calls: a device's address serves no coordinator, and errors have codes") {
  served_cluster served{with_devices};
  auto device = served.client_of_device(0);
  course::CommInitRequest init;
  init.set_numdevices(1);
  CHECK(device.call<course::CommInitResponse>("GPUCoordinator/CommInit", init).status_code() == grpc::UNIMPLEMENTED);
  CHECK(device.call<course::HeartbeatResponse>("GPUDevice/Heartbeat", course::HeartbeatRequest{}).answer().success());
  CHECK(device.call<course::ResetGpuResponse>("GPUDevice/ResetGpu", course::ResetGpuRequest{}).answer().success());
  course::GetStreamStatusRequest status;
  status.mutable_streamid()->set_value(123456);
  const auto unknown = device.call<course::GetStreamStatusResponse>("GPUDevice/GetStreamStatus", status);
  CHECK(unknown.status_code() == grpc::NOT_FOUND);
  CHECK(unknown.code == "unknown_stream");
  CHECK(device.stream_send({chunk_of(99, 0, 8)}).status_code() == grpc::NOT_FOUND);
  CHECK(device.stream_send({chunk_of(0, 0, 8)}).status_code() == grpc::INVALID_ARGUMENT);
  served.client_of().comm_init(2);
  const auto low = address_of(device);
  CHECK(device.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(0, low, 1)).status_code()
        == grpc::INVALID_ARGUMENT);
  CHECK(device.call<course::BeginSendResponse>("GPUDevice/BeginSend", send_of(low, 9)).status_code()
        == grpc::INVALID_ARGUMENT);
  CHECK(device.call<course::BeginSendResponse>("GPUDevice/BeginSend", send_of(low - 8, 1)).status_code()
        == grpc::OUT_OF_RANGE);
}

TEST_CASE("device calls: a transfer whose peer dies has failed") {
  served_cluster served{with_devices};
  auto coordinator = served.client_of();
  const auto made = coordinator.comm_init(2);
  auto target = served.client_of_device(1);
  CHECK(target.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(8, address_of(target), 0)).ok());
  served.kill(made.devices(0).deviceid().value());
  CHECK(poll_stream(target, 8) == course::FAILED);
}

TEST_CASE("device calls: where the dialect has it applied, the receiver reduces what BeginSend's field 4 names") {
  served_cluster served{"[a]\naddress = 127.0.0.1:0\ndevices = 127.0.0.1:0, 127.0.0.1:0\nsend-op = applied\n"
                        "reduce-op = NIL, SUM, PROD, MIN, MAX, AVG\n"
                        "[lab]\naddress = 127.0.0.1:0\ndevices = 127.0.0.1:0, 127.0.0.1:0\n"};
  const std::vector<double> present(numbers_count, 3.0);
  auto transferred = [&](size_t listener, int op) {
    auto coordinator = served.client_of(listener);
    const auto made = coordinator.comm_init(2);
    auto source = served.client_of_device(0, listener), target = served.client_of_device(1, listener);
    const auto from = address_of(source), to = address_of(target);
    coordinator.copy_to_device(made.devices(0).deviceid().value(), from, numbers);
    coordinator.copy_to_device(made.devices(1).deviceid().value(), to, present);
    auto send = send_of(from, 1);
    send.set_op(static_cast<course::ReduceOp>(op));
    const auto stream = source.call<course::BeginSendResponse>("GPUDevice/BeginSend", send).answer().streamid().value();
    CHECK(target.call<course::BeginReceiveResponse>("GPUDevice/BeginReceive", receive_of(stream, to, 0)).ok());
    CHECK(poll_stream(target, stream) == course::SUCCESS);
    return coordinator.copy_to_host<double>(made.devices(1).deviceid().value(), to, numbers_count);
  };
  auto combined = [&](auto op) {
    auto result = numbers;
    for (auto& x : result)
      x = op(x);
    return result;
  };
  CHECK(transferred(0, 0) == numbers); // NIL
  CHECK(transferred(0, 1) == combined([](double x) { return x + 3; }));
  CHECK(transferred(0, 2) == combined([](double x) { return x * 3; }));
  CHECK(transferred(0, 3) == combined([](double x) { return std::min(x, 3.0); }));
  CHECK(transferred(0, 4) == combined([](double x) { return std::max(x, 3.0); }));
  CHECK(transferred(1, 1) == numbers); // the lab's form ignores the field

  auto source = served.client_of_device(0);
  auto refused = [&](int op, uint64_t bytes) {
    auto send = send_of(address_of(source), 1);
    send.set_op(static_cast<course::ReduceOp>(op));
    send.set_numbytes(bytes);
    const auto result = source.call<course::BeginSendResponse>("GPUDevice/BeginSend", send);
    CHECK(result.status_code() == grpc::INVALID_ARGUMENT);
    return result.status.error_message();
  };
  CHECK(refused(9, 8) == "the reduction 9 is not 1 (SUM), 2 (PROD), 3 (MIN), 4 (MAX) or 5 (AVG)");
  CHECK(refused(5, 8) == "a transfer reduces by sum, prod, min or max, not by avg");
  CHECK(refused(1, 12)
        == "a transfer that reduces has whole elements, and 12 bytes are no multiple of the 8 bytes of a float64");
}
