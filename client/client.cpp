#include "client/client.hpp"

#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/utf8.hpp"

#include "actors/calls/request_limit.hpp"
#include "actors/calls/spin.hpp"
#include "runtime/health/copy_pace.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

gpu_sim::DeviceId to_wire(device_id device) {
  gpu_sim::DeviceId result;
  result.set_value(device.value);
  return result;
}

template <class Response>
caf::error error_from(const caf::expected<Response>& answer) {
  return answer ? caf::error{} : answer.error();
}

gpu_sim::GetCommStatusRequest status_request(communicator_id communicator, bool read_only) {
  gpu_sim::GetCommStatusRequest result;
  result.set_commid(communicator.value);
  result.set_readonly(read_only);
  return result;
}

} // namespace

client::client(caf::actor_system& system, coordinator_actor coordinator, caf::timespan limit)
  : self_(system), coordinator_(std::move(coordinator)), link_(self_, coordinator_), gate_(self_, coordinator_),
    limit_(limit) {}

caf::error client::no_answer(const caf::error& problem, caf::timespan limit) const {
  if (problem == caf::sec::request_timeout)
    return make_error(errc::timed_out, fmt::format("the coordinator did not answer within {:.1f} s",
                                                   std::chrono::duration<double>{limit}.count()));
  if (problem == errc::too_many || problem == errc::permission_denied) // it lives, and has refused the call
    return problem;
  return make_error(errc::device_lost, "the coordinator is gone: " + render(problem));
}

caf::error client::no_answer_of(communicator_id communicator, const caf::error& problem) {
  if (problem != caf::sec::request_receiver_down)
    return no_answer(problem, limit_);
  auto ended = status(communicator); // the coordinator knows how; if it is gone itself, this says so
  return ended ? make_error(errc::unknown_communicator, fmt::format("communicator {} has ended", communicator))
               : std::move(ended.error());
}

void client::look_for_answer(caf::message_id answer, caf::timespan limit) {
  link_.expect(answer, limit);
  constexpr auto spins_for = std::chrono::microseconds{50};
  spin_until([this] { return !self_->mailbox().empty(); }, spins_for);
}

caf::expected<proto::ClusterInfo> client::devices(uint32_t devices_min, caf::timespan within) {
  proto::ClusterInfoRequest request;
  request.set_min_devices(devices_min);
  within = request_limit(within);
  request.set_timeout_ns(static_cast<uint64_t>(within.count()));
  auto info = ask_within<proto::ClusterInfo>(limit_ + within, std::move(request));
  if (info && static_cast<uint32_t>(info->devices_size()) < devices_min)
    return make_error(errc::timed_out, fmt::format("{} {} joined within {:.1f} s, and {} waited for",
                                                   counted(static_cast<uint64_t>(info->devices_size()), "device"),
                                                   info->devices_size() == 1 ? "has" : "have",
                                                   std::chrono::duration<double>{within}.count(),
                                                   devices_min == 1 ? "1 was" : fmt::format("{} were", devices_min)));
  return info;
}

caf::expected<proto::ClusterInfo> client::info() {
  proto::ClusterInfoRequest request;
  request.set_communicators(true);
  return ask<proto::ClusterInfo>(std::move(request));
}

caf::expected<proto::ClusterStatus> client::cluster_status() {
  return ask<proto::ClusterStatus>(proto::ClusterStatusRequest{});
}

caf::expected<uint64_t> client::allocate(device_id device, uint64_t bytes, uint64_t alignment) {
  proto::AllocateRequest request;
  request.set_bytes(bytes);
  request.set_alignment(alignment);
  request.set_outlives_client(persistent_);
  TRY(answer, ask<proto::AllocateResponse>(to_wire(device), std::move(request)));
  return answer->address().value();
}

caf::error client::free(device_id device, uint64_t address) {
  proto::FreeRequest request;
  request.mutable_address()->set_value(address);
  return error_from(ask<proto::FreeResponse>(to_wire(device), std::move(request)));
}

caf::expected<uint64_t> client::place_of(device_id device, uint64_t address, uint64_t bytes) {
  TRY(there, ask<gpu_sim::GetDeviceMetadataResponse>(to_wire(device), gpu_sim::GetDeviceMetadataRequest{}));
  auto begin = there->metadata().minmemaddr().value(), end = there->metadata().maxmemaddr().value();
  if (address >= begin && address <= end && bytes <= end - address)
    return address - begin;
  return make_error(errc::out_of_range,
                    fmt::format("device 0x{:x}: address {:#x} with {:#x} bytes is not within its memory, which is "
                                "[{:#x}, {:#x})",
                                device, address, bytes, begin, end));
}

// A message is sent as a whole: a large one would hold up all others on its way, heartbeats included. 100 MB take a
// second on a link of 1 Gb/s. So a copy goes in pieces, of which one or two are under way (`copy_pace`). They end where
// huge pages of the device's memory do: an unused page is made as one when all of it is about to be
// written.
caf::error client::copy_in_pieces(
  device_id device, uint64_t address, uint64_t bytes,
  const std::function<std::pair<gpu_sim::MemcpyRequest, byte_block>(uint64_t, uint64_t)>& ask,
  const std::function<caf::error(uint64_t, uint64_t, const byte_block&)>& take) {
  using clock = std::chrono::steady_clock;
  const bool is_single = bytes <= copy_pace::bytes_max;
  uint64_t place = 0; // of no matter for a single piece
  if (!is_single) {
    TRY(found, place_of(device, address, bytes));
    place = *found;
  }
  copy_pace pace;
  auto piece_at = [&](uint64_t offset) {
    auto most = is_single ? copy_pace::bytes_max : pace.bytes();
    return std::min(bytes - offset, most - (place + offset) % most);
  };
  auto begin_piece = [&](uint64_t offset, uint64_t piece_bytes) {
    auto [request, block] = ask(offset, piece_bytes);
    return begin(std::move(request), std::move(block));
  };
  struct piece_under_way {
    uint64_t offset, bytes;
    clock::time_point begun;
    decltype(begin_piece(0, 0)) answer;
  };
  std::deque<piece_under_way> under_way;
  caf::error problem;
  auto keep = [&](caf::error x) { // the first
    if (!problem)
      problem = std::move(x);
  };
  uint64_t next = 0;
  do {
    while (!problem && under_way.size() < pace.under_way_max() && (next < bytes || (bytes == 0 && under_way.empty()))) {
      auto piece_bytes = piece_at(next);
      ensure(piece_bytes > 0 || bytes == 0, "a copy makes progress with each piece");
      under_way.push_back({next, piece_bytes, clock::now(), begin_piece(next, piece_bytes)});
      next += piece_bytes;
    }
    auto oldest = std::move(under_way.front());
    under_way.pop_front();
    receive(
      oldest.answer, limit_,
      [&](const gpu_sim::MemcpyResponse& x, const byte_block& piece) {
        pace.took(clock::now() - oldest.begun);
        keep(error_in(x));
        if (!problem)
          keep(take(oldest.offset, oldest.bytes, piece));
      },
      [&](const caf::error& x) { keep(no_answer(x, limit_)); });
  } while (!under_way.empty() || (!problem && next < bytes));
  ensure(problem || next == bytes, "a copy without an error covers the whole range");
  return problem;
}

caf::error client::copy_to_device(device_id device, uint64_t address, byte_block block) {
  auto ask = [&](uint64_t offset, uint64_t bytes) {
    gpu_sim::MemcpyRequest request;
    *request.mutable_hosttodevice()->mutable_dstdeviceid() = to_wire(device);
    request.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(address + offset);
    return std::pair{std::move(request), block.part(offset, bytes)};
  };
  return copy_in_pieces(device, address, block.size(), ask,
                        [](uint64_t, uint64_t, const byte_block&) { return caf::error{}; });
}

caf::expected<byte_block> client::copy_to_host(device_id device, uint64_t address, uint64_t bytes) {
  auto ask = [&](uint64_t offset, uint64_t piece) {
    gpu_sim::MemcpyRequest request;
    *request.mutable_devicetohost()->mutable_srcdeviceid() = to_wire(device);
    request.mutable_devicetohost()->mutable_srcmemaddr()->set_value(address + offset);
    request.mutable_devicetohost()->set_numbytes(piece);
    return std::pair{std::move(request), byte_block{}};
  };
  byte_block whole;
  std::byte* target = nullptr;
  auto take = [&](uint64_t offset, uint64_t asked, const byte_block& piece) -> caf::error {
    if (piece.size() != asked)
      return malformed(fmt::format("device 0x{:x} answers with {} bytes from {} on, where {} were asked for in all",
                                   device, piece.size(), offset, bytes));
    if (piece.size() == bytes) {
      whole = piece; // the only one
      return {};
    }
    if (target == nullptr)
      whole = byte_block::uninitialized(bytes, target);
    std::copy(piece.bytes().begin(), piece.bytes().end(), target + offset);
    return {};
  };
  RETURN_ERROR(copy_in_pieces(device, address, bytes, ask, take));
  return whole;
}

caf::expected<std::vector<std::string>> client::drain(const std::string& node, caf::timespan within) {
  proto::DrainRequest request;
  request.set_node(node);
  within = request_limit(within);
  request.set_timeout_ns(static_cast<uint64_t>(within.count()));
  TRY(answer, ask_within<proto::DrainResponse>(limit_ + within, std::move(request)));
  return std::vector<std::string>{answer->done().begin(), answer->done().end()};
}

caf::error client::tell_absent(const std::string& group, uint32_t rank, const std::string& cause) {
  proto::RankAbsentRequest request;
  request.set_group(group);
  request.set_rank(rank);
  constexpr size_t cause_max = 1000;
  request.set_cause(as_utf8(cause.substr(0, cause_max)));
  return error_from(ask<proto::RankAbsentResponse>(std::move(request)));
}

caf::error client::inject(device_id device, const proto::FaultRequest& fault) {
  return error_from(ask<proto::FaultResponse>(to_wire(device), fault));
}

caf::expected<gpu_sim::CommInitResponse> client::comm_init(gpu_sim::CommInitRequest request) {
  request.set_outlivesclient(persistent_);
  return ask<gpu_sim::CommInitResponse>(std::move(request));
}

caf::expected<gpu_sim::CommInitResponse> client::comm_init(uint32_t ranks, std::optional<bool> deterministic) {
  gpu_sim::CommInitRequest request;
  request.set_numdevices(ranks);
  request.set_defaultpolicy(true);
  if (deterministic)
    request.set_deterministic(*deterministic);
  return comm_init(std::move(request));
}

caf::expected<gpu_sim::CommInitResponse> client::comm_init(uint32_t ranks, proto::FailurePolicy policy,
                                                           std::optional<bool> deterministic) {
  gpu_sim::CommInitRequest request;
  request.set_numdevices(ranks);
  request.set_policy(policy);
  if (deterministic)
    request.set_deterministic(*deterministic);
  return comm_init(std::move(request));
}

caf::expected<gpu_sim::CommInitResponse> client::comm_init(const std::vector<device_id>& devices) {
  gpu_sim::CommInitRequest request;
  for (auto id : devices)
    request.add_deviceids(id.value);
  request.set_defaultpolicy(true);
  return comm_init(std::move(request));
}

caf::expected<std::vector<gpu_sim::CommInitResponse>> client::split(
  communicator_id communicator, const std::vector<int32_t>& colors, const std::vector<int64_t>& keys) {
  proto::CommDeriveRequest request;
  request.set_comm_id(communicator.value);
  request.mutable_split()->mutable_colors()->Add(colors.begin(), colors.end());
  request.mutable_split()->mutable_keys()->Add(keys.begin(), keys.end());
  request.set_outlives_client(persistent_);
  TRY(answer, ask<proto::CommDeriveResponse>(std::move(request)));
  std::vector<gpu_sim::CommInitResponse> result;
  for (auto& part : answer->parts())
    result.push_back(part.comm());
  return result;
}

caf::expected<gpu_sim::CommInitResponse> client::derive_one(proto::CommDeriveRequest request) {
  request.set_outlives_client(persistent_);
  TRY(answer, ask<proto::CommDeriveResponse>(std::move(request)));
  return answer->parts(0).comm();
}

caf::expected<gpu_sim::CommInitResponse> client::duplicate(communicator_id communicator) {
  proto::CommDeriveRequest request;
  request.set_comm_id(communicator.value);
  request.mutable_split(); // without colours all have one
  return derive_one(std::move(request));
}

caf::expected<gpu_sim::CommInitResponse> client::shrink(communicator_id communicator,
                                                        const std::vector<uint32_t>& ranks) {
  proto::CommDeriveRequest request;
  request.set_comm_id(communicator.value);
  request.mutable_shrink()->mutable_ranks()->Add(ranks.begin(), ranks.end());
  return derive_one(std::move(request));
}

caf::expected<gpu_sim::CommInitResponse> client::grow(communicator_id communicator, uint32_t devices) {
  proto::CommDeriveRequest request;
  request.set_comm_id(communicator.value);
  request.mutable_grow()->set_devices(devices);
  return derive_one(std::move(request));
}

caf::expected<gpu_sim::CommInitResponse> client::grow(communicator_id communicator,
                                                      const std::vector<device_id>& devices) {
  proto::CommDeriveRequest request;
  request.set_comm_id(communicator.value);
  for (auto id : devices)
    request.mutable_grow()->add_device_ids(id.value);
  return derive_one(std::move(request));
}

caf::error client::group_start(communicator_id communicator) {
  gpu_sim::GroupStartRequest request;
  request.set_commid(communicator.value);
  return error_from(ask<gpu_sim::GroupStartResponse>(std::move(request)));
}

caf::error client::group_end(communicator_id communicator) {
  gpu_sim::GroupEndRequest request;
  request.set_commid(communicator.value);
  return error_from(ask<gpu_sim::GroupEndResponse>(std::move(request)));
}

caf::expected<sequence_number> client::all_reduce_ring(const gpu_sim::AllReduceRingRequest& request) {
  TRY(answer, ask<gpu_sim::AllReduceRingResponse>(request));
  return sequence_number{answer->sequence()};
}

caf::expected<sequence_number> client::collective(const proto::CollectiveRequest& request) {
  caf::expected<sequence_number> result = sequence_number{};
  auto answer = begin(request);
  receive(
    answer, limit_,
    [&](const proto::CollectiveResponse& x) {
      if (auto problem = error_in(x))
        result = std::move(problem);
      else
        result = sequence_number{x.sequence()};
    },
    [&](const caf::error& problem) { result = no_answer_of(communicator_id{request.comm_id()}, problem); });
  return result;
}

void client::begin_collective(const proto::CollectiveRequest& request, size_t calls_max) {
  ensure(calls_max > 0, "a client may have at least one pending call");
  calls_max = std::min(calls_max, calls_under_way_max);
  while (calls_.size() >= calls_max)
    take_oldest_answer();
  auto call = request;
  call.set_answer_may_wait(calls_.size() + 1 < calls_max); // the last one's answer is waited for next
  auto id = self_->new_request_id(caf::message_priority::normal);
  calls_.push_back({communicator_id{request.comm_id()}, pending_call{id.response_id(), self_.ptr()}});
  gate_.call(id.response_id(), std::move(call));
}

void client::take_oldest_answer() {
  auto keep = [this](caf::error problem) {
    if (!call_error_)
      call_error_ = std::move(problem);
  };
  ensure(!calls_.empty(), "the oldest call is taken of those that are pending");
  auto call = std::move(calls_.front());
  calls_.pop_front();
  receive(
    call.answer, limit_,
    [&](const proto::CollectiveResponse& x) {
      if (auto problem = error_in(x))
        keep(std::move(problem));
    },
    [&](const caf::error& problem) { keep(no_answer_of(call.communicator, problem)); });
}

caf::error client::finish_calls() {
  gate_.open();
  while (!calls_.empty())
    take_oldest_answer();
  ensure(calls_.empty(), "no call is pending after all were answered");
  return std::exchange(call_error_, {});
}

caf::expected<gpu_sim::GetCommStatusResponse> client::status(communicator_id communicator) {
  return ask<gpu_sim::GetCommStatusResponse>(status_request(communicator, false));
}

caf::expected<gpu_sim::GetCommStatusResponse> client::members(communicator_id communicator) {
  return ask<gpu_sim::GetCommStatusResponse>(status_request(communicator, true));
}

caf::expected<gpu_sim::GetCommStatusResponse> client::wait(communicator_id communicator, caf::timespan within) {
  proto::CommWaitRequest request;
  request.set_comm_id(communicator.value);
  within = request_limit(within);
  request.set_timeout_ns(static_cast<uint64_t>(within.count()));
  auto answer = ask_within<gpu_sim::GetCommStatusResponse>(limit_ + within, std::move(request));
  if (answer && answer->status() == gpu_sim::IN_PROGRESS)
    return make_error(errc::timed_out, answer->error());
  return answer;
}

caf::error client::abort(communicator_id communicator, const std::string& reason) {
  proto::CommAbortRequest request;
  request.set_comm_id(communicator.value);
  request.set_reason(reason);
  return error_from(ask<proto::CommAbortResponse>(std::move(request)));
}

caf::error client::destroy(communicator_id communicator) {
  proto::CommDestroyRequest request;
  request.set_comm_id(communicator.value);
  return error_from(ask<proto::CommDestroyResponse>(std::move(request)));
}

caf::expected<std::vector<proto::Record>> client::journal_tail(uint32_t records_max) {
  proto::JournalTailRequest request;
  request.set_records_max(records_max);
  TRY(answer, ask<proto::JournalTailResponse>(std::move(request)));
  return std::vector<proto::Record>{answer->records().begin(), answer->records().end()};
}

caf::error client::journal_flush() {
  return error_from(ask<proto::JournalFlushResponse>(proto::JournalFlushRequest{}));
}

} // namespace ringmaster
