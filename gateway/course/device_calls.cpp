#include "gateway/course/device_calls.hpp"

#include "gateway/course/communicator_calls.hpp"
#include "gateway/course/copy_wire.hpp"
#include "messages/errc.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <string>

namespace ringmaster::gateway {

namespace {

gpu_sim::DeviceId to_wire(device_id device) {
  gpu_sim::DeviceId result;
  result.set_value(device.value);
  return result;
}

/// A communicator and a rank of it, in the cluster's terms.
struct named_peer {
  uint64_t communicator = 0; ///< 0: the only one of the device.
  uint32_t rank = 0;
};

/// Whom a BeginSend or BeginReceive names by number, as a rank of the device's latest communicator.
caf::expected<named_peer> find_peer(course_desk_state& desk, device_id device, uint32_t number) {
  auto* communicator = desk.communicators.latest_of(device);
  if (communicator == nullptr && desk.form().peer == dialect::peer_name::rank)
    return named_peer{0, number};
  if (communicator == nullptr)
    return make_error(errc::unknown_communicator, "the device is in no communicator: call CommInit first");
  communicator->last_used = std::max(communicator->last_used, desk.now());
  if (desk.form().peer == dialect::peer_name::rank) {
    auto rank = communicator->present_rank(number);
    if (!rank)
      return std::move(rank.error());
    return named_peer{communicator->now().value, *rank};
  }
  auto peer = desk.devices->with_id(number);
  if (!peer)
    return std::move(peer.error());
  auto rank = communicator->rank_of(*peer);
  if (!rank)
    return invalid(fmt::format("device {} is not in the communicator of this device", number));
  return named_peer{communicator->now().value, *rank};
}

void remember_receive(course_desk_state& desk, uint64_t stream, device_id device) {
  constexpr size_t receives_max = 10'000;
  if (desk.receivers.size() >= receives_max && desk.receivers.count(stream) == 0)
    desk.receivers.erase(desk.receivers.begin());
  desk.receivers[stream] = device;
}

/// The stream that a chunk names: by a field, by the metadata of its call, by a header before its data, or as an earlier
/// chunk of the call. Errors: invalid_argument.
caf::expected<uint64_t> stream_of(const dialect& form, const call_origin& origin, course_chunk& chunk) {
  auto& earlier = *origin.chunks_stream;
  if (chunk.stream)
    earlier = chunk.stream;
  if (!earlier)
    earlier = origin.stream;
  if (!earlier && form.chunk == dialect::chunk_name::header) {
    constexpr size_t header_bytes = 16, id_bytes = 8; // the stream, least byte first; the rest is of no matter here
    if (chunk.data.size() < header_bytes)
      return invalid(fmt::format("the first chunk has {} bytes, and starts with a header of {}", chunk.data.size(),
                                 header_bytes));
    const auto header = chunk.data.take(header_bytes);
    uint64_t id = 0;
    for (size_t i = id_bytes; i-- > 0;)
      id = id << 8 | static_cast<uint8_t>(header[i]);
    earlier = id;
  }
  if (!earlier)
    return invalid("the chunk names no stream: its field streamId, or the metadata `streamid`");
  return *earlier;
}

/// A chunk in pieces, one after the other: messages for others would wait for a large one. What was sent is freed.
class chunk_delivery : public std::enable_shared_from_this<chunk_delivery> {
public:
  chunk_delivery(course_desk_state& desk, call_pointer call, uint64_t stream, received_data data)
    : desk_(desk), call_(std::move(call)), stream_(stream), data_(std::move(data)) {}

  void run(device_id device) {
    constexpr size_t piece_bytes_max = 1u << 20;
    gpu_sim::DataChunk piece;
    piece.mutable_streamid()->set_value(stream_);
    piece.set_data(data_.take(piece_bytes_max));
    desk_.ask<gpu_sim::StreamSendResponse>(
      call_,
      [me = shared_from_this(), device](const gpu_sim::StreamSendResponse&) {
        if (me->data_.size() > 0)
          return me->run(device);
        course::StreamSendResponse answer;
        answer.set_success(true);
        me->call_->answer(answer);
      },
      to_wire(device), std::move(piece));
  }

private:
  course_desk_state& desk_;
  call_pointer call_;
  uint64_t stream_;
  received_data data_; ///< What was not sent.
};

/// The device of a call that names a stream.
void with_device_of_stream(course_desk_state& desk, const call_pointer& call, uint64_t stream,
                           std::function<void(device_id)> then) {
  const auto receiver = desk.receivers.find(stream);
  const bool is_named = call->origin().place || call->origin().device;
  if (!is_named && receiver != desk.receivers.end())
    return then(receiver->second);
  with_called_device(desk, call, std::move(then));
}

template <class Answer>
void succeed(const call_pointer& call) {
  Answer answer;
  answer.set_success(true);
  call->answer(answer);
}

} // namespace

course::DeviceMetadata metadata_for_clients(const course_desk_state& desk, const cluster_memory& x) {
  const auto seen = desk.devices->seen_memory(x);
  course::DeviceMetadata result;
  result.mutable_deviceid()->set_value(desk.devices->id_for_clients(x.device));
  result.mutable_minmemaddr()->set_value(seen.min);
  result.mutable_maxmemaddr()->set_value(seen.max);
  return result;
}

void with_called_device(course_desk_state& desk, const call_pointer& call, std::function<void(device_id)> then) {
  const auto& origin = call->origin();
  if (origin.place)
    return desk.with_device(
      call, [&desk, place = *origin.place] { return desk.devices->at_place(place); }, then);
  if (origin.device)
    return desk.with_device(
      call, [&desk, id = *origin.device] { return desk.devices->with_id(id); }, then);
  call->fail(invalid("which device? Call its own address, or name it by the metadata `device-id`"));
}

void get_device_metadata(course_desk_state& desk, const call_pointer& call) {
  with_called_device(desk, call, [&desk, call](device_id device) {
    desk.ask<gpu_sim::GetDeviceMetadataResponse>(
      call,
      [&desk, call](const gpu_sim::GetDeviceMetadataResponse& x) {
        desk.devices->learn(x.metadata());
        course::GetDeviceMetadataResponse answer;
        *answer.mutable_metadata() = metadata_for_clients(desk, cluster_memory::of(x.metadata()));
        call->answer(answer);
      },
      to_wire(device), gpu_sim::GetDeviceMetadataRequest{});
  });
}

void begin_send(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::BeginSendRequest>(call);
  if (!request)
    return;
  with_called_device(desk, call, [&desk, call, request = *request](device_id device) {
    auto peer = find_peer(desk, device, request.dstrank().value());
    if (!peer)
      return call->fail(peer.error());
    auto address = desk.devices->address(device, request.sendbuffaddr().value(), request.numbytes());
    if (!address)
      return call->fail(address.error());
    auto reduction = desk.form().send_reduction(request.op());
    if (!reduction)
      return call->fail(reduction.error());
    gpu_sim::BeginSendRequest forwarded;
    if (*reduction)
      *forwarded.mutable_reduction() = **reduction;
    forwarded.mutable_sendbuffaddr()->set_value(*address);
    forwarded.set_numbytes(request.numbytes());
    forwarded.mutable_dstrank()->set_value(peer->rank);
    forwarded.set_commid(peer->communicator);
    desk.ask<gpu_sim::BeginSendResponse>(
      call,
      [call](const gpu_sim::BeginSendResponse& x) {
        course::BeginSendResponse answer;
        answer.set_initiated(x.initiated());
        answer.mutable_streamid()->set_value(x.streamid().value());
        call->answer(answer);
      },
      to_wire(device), std::move(forwarded));
  });
}

void begin_receive(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::BeginReceiveRequest>(call);
  if (!request)
    return;
  with_called_device(desk, call, [&desk, call, request = *request](device_id device) {
    auto peer = find_peer(desk, device, request.srcrank().value());
    if (!peer)
      return call->fail(peer.error());
    auto address = desk.devices->address(device, request.recvbuffaddr().value(), request.numbytes());
    if (!address)
      return call->fail(address.error());
    gpu_sim::BeginReceiveRequest forwarded;
    const auto stream = request.streamid().value();
    forwarded.mutable_streamid()->set_value(stream);
    forwarded.mutable_recvbuffaddr()->set_value(*address);
    forwarded.set_numbytes(request.numbytes());
    forwarded.mutable_srcrank()->set_value(peer->rank);
    forwarded.set_commid(peer->communicator);
    desk.ask<gpu_sim::BeginReceiveResponse>(
      call,
      [&desk, call, stream, device](const gpu_sim::BeginReceiveResponse& x) {
        remember_receive(desk, stream, device);
        course::BeginReceiveResponse answer;
        answer.set_initiated(x.initiated());
        call->answer(answer);
      },
      to_wire(device), std::move(forwarded));
  });
}

void take_chunk(course_desk_state& desk, const call_pointer& call) {
  auto chunk = read_chunk(call->request());
  if (!chunk)
    return call->fail(chunk.error());
  call->request().Clear();
  auto stream = stream_of(desk.form(), call->origin(), *chunk);
  if (!stream)
    return call->fail(stream.error());
  auto delivery = std::make_shared<chunk_delivery>(desk, call, *stream, std::move(chunk->data));
  with_device_of_stream(desk, call, *stream, [delivery](device_id device) { delivery->run(device); });
}

void get_stream_status(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::GetStreamStatusRequest>(call);
  if (!request)
    return;
  const auto stream = request->streamid().value();
  with_device_of_stream(desk, call, stream, [&desk, call, stream](device_id device) {
    gpu_sim::GetStreamStatusRequest forwarded;
    forwarded.mutable_streamid()->set_value(stream);
    desk.ask_or<gpu_sim::GetStreamStatusResponse>(
      call,
      [&desk, call](const gpu_sim::GetStreamStatusResponse& x) {
        course::GetStreamStatusResponse answer;
        answer.set_status(static_cast<course::Status>(desk.form().number_of(x.status())));
        call->answer(answer);
      },
      [call](const caf::error& problem) { call->fail(problem); }, to_wire(device), std::move(forwarded));
  });
}

void setup_communication(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::SetupCommunicationRequest>(call);
  if (!request)
    return;
  const auto ranks = static_cast<uint32_t>(request->ranktoaddress_size());
  std::vector<std::string> addresses;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto i = request->ranktoaddress().find(rank);
    if (i == request->ranktoaddress().end())
      return call->fail(invalid(fmt::format("rankToAddress has {} ranks, and rank {} is missing", ranks, rank)));
    addresses.push_back(i->second);
  }
  if (request->rank().value() >= ranks)
    return call->fail(
      invalid(fmt::format("rankToAddress has {} ranks, and this is rank {}", ranks, request->rank().value())));
  auto find = [&desk, addresses] { return desk.devices->at_addresses(addresses); };
  desk.with_device(call, find, [&desk, call](const std::vector<device_id>& devices) {
    const auto* known = desk.communicators.latest_of(devices.front());
    if (known != nullptr && known->devices() == devices)
      return succeed<course::SetupCommunicationResponse>(call); // another rank's call has made it
    init_on(desk, call, devices,
            [call](const gpu_sim::CommInitResponse&) { succeed<course::SetupCommunicationResponse>(call); });
  });
}

void reset_gpu(course_desk_state& desk, const call_pointer& call) {
  with_called_device(desk, call, [&desk, call](device_id device) {
    std::erase_if(desk.receivers, [device](auto& entry) { return entry.second == device; });
    succeed<course::ResetGpuResponse>(call);
  });
}

void device_heartbeat(course_desk_state& desk, const call_pointer& call) {
  with_called_device(desk, call, [&desk, call](device_id device) {
    desk.ask<gpu_sim::GetDeviceMetadataResponse>(
      call, [call](const gpu_sim::GetDeviceMetadataResponse&) { succeed<course::HeartbeatResponse>(call); },
      to_wire(device), gpu_sim::GetDeviceMetadataRequest{});
  });
}

} // namespace ringmaster::gateway
