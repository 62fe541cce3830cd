#pragma once

#include "actors/calls/answers.hpp"
#include "client/call_gate.hpp"
#include "client/coordinator_link.hpp"
#include "messages/interfaces.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/reduction/reduction.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>
#include <caf/scoped_actor.hpp>

#include <deque>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ringmaster {

/// A client of the coordinator for code that is not an actor. Each call waits for its answer, for `limit` at most.
/// Errors have a message and the code that the process which refused gave it, such as unknown_device, too_few_devices
/// or out_of_memory; timed_out and device_lost where the coordinator does not answer. One thread at a time.
///
/// The coordinator destroys the communicators and frees the memory that a client made when the client is destroyed, its
/// process ends or its connection breaks, except what was made persistent.
class client {
public:
  /// How long the coordinator may take to answer.
  static constexpr caf::timespan usual_limit = std::chrono::seconds{30};
  /// Limit of calls that were begun and not answered. The next call waits for the oldest one. This slows down a program
  /// that calls ahead of its cluster, and protects other clients.
  static constexpr size_t calls_under_way_max = 512;

  client(caf::actor_system& system, coordinator_actor coordinator, caf::timespan limit = usual_limit);

  /// Whether communicators and memory made from now on outlive this client.
  void set_persistent(bool stays) { persistent_ = stays; }

  // -- devices --

  /// Lists the devices, at once or when at least `devices_min` have joined. Errors: timed_out, with both numbers.
  caf::expected<proto::ClusterInfo> devices(uint32_t devices_min = 0, caf::timespan within = {});
  /// Devices, nodes and communicators with their state, and which ones have left and why.
  caf::expected<proto::ClusterInfo> info();
  /// What every rank is doing. Answered at once: the coordinator does not wait for ranks that are stalled.
  caf::expected<proto::ClusterStatus> cluster_status();
  /// A range in the device's memory. `bytes` > 0.
  caf::expected<uint64_t> allocate(device_id device, uint64_t bytes, uint64_t alignment = 256);
  caf::error free(device_id device, uint64_t address);
  /// Copies the whole block to `address` on the device, after the commands in its default stream.
  caf::error copy_to_device(device_id device, uint64_t address, byte_block block);
  /// Copies `bytes` from `address` on the device.
  caf::expected<byte_block> copy_to_host(device_id device, uint64_t address, uint64_t bytes);
  /// Waits until the devices of the node have left their communicators, after running operations, and the node has
  /// exited. Returns what each communicator did, one sentence each. Errors: refused; timed_out, with what was waited
  /// for.
  caf::expected<std::vector<std::string>> drain(const std::string& node, caf::timespan within);
  /// Reports that the process of a rank has exited, so that calls which wait for the rank fail. `group`: "world" under
  /// caf-run.
  caf::error tell_absent(const std::string& group, uint32_t rank, const std::string& cause);
  caf::error inject(device_id device, const proto::FaultRequest& fault);

  // -- communicators --

  /// Ranks 0..n-1 on n free devices. Without a policy: that of the cluster's configuration. `deterministic`: whether
  /// reductions add in rank order, with every algorithm; none: as configured.
  caf::expected<gpu_sim::CommInitResponse> comm_init(uint32_t ranks, std::optional<bool> deterministic = {});
  caf::expected<gpu_sim::CommInitResponse> comm_init(uint32_t ranks, proto::FailurePolicy policy,
                                                     std::optional<bool> deterministic = {});
  /// As the request says, except `outlivesClient`: a name, devices and a policy at once.
  caf::expected<gpu_sim::CommInitResponse> comm_init(gpu_sim::CommInitRequest request);
  /// Ranks 0..n-1 on these devices, which may be in other communicators.
  caf::expected<gpu_sim::CommInitResponse> comm_init(const std::vector<device_id>& devices);
  /// Communicators of the ranks of another one, which stays as it is. `colors` and `keys` have one element for each
  /// rank: ranks of equal color form a communicator, ordered by key, then by rank; a color below 0 means none. The
  /// result is ordered by color.
  caf::expected<std::vector<gpu_sim::CommInitResponse>> split(
    communicator_id communicator, const std::vector<int32_t>& colors, const std::vector<int64_t>& keys = {});
  caf::expected<gpu_sim::CommInitResponse> duplicate(communicator_id communicator);
  /// Without these ranks.
  caf::expected<gpu_sim::CommInitResponse> shrink(communicator_id communicator, const std::vector<uint32_t>& ranks);
  /// With this number of free devices more, or with these devices. They get the highest ranks.
  caf::expected<gpu_sim::CommInitResponse> grow(communicator_id communicator, uint32_t devices);
  caf::expected<gpu_sim::CommInitResponse> grow(communicator_id communicator, const std::vector<device_id>& devices);
  caf::error group_start(communicator_id communicator);
  caf::error group_end(communicator_id communicator);
  /// Enqueues; returns the operation's number.
  caf::expected<sequence_number> all_reduce_ring(const gpu_sim::AllReduceRingRequest& request);
  caf::expected<sequence_number> collective(const proto::CollectiveRequest& request);
  /// Enqueues without waiting for the answer. At most `calls_max` (and `calls_under_way_max`) calls are pending; a
  /// further one waits for the oldest. Calls that start while others are pending may be sent together: see `call_gate`.
  /// `finish_calls` returns the first error of any of them. Until then their buffers must not change: copies, and calls
  /// on other communicators, may overtake them. They may wait for later calls and run together with them
  /// (`answer_may_wait`); a program that measures an algorithm sets `walks_alone`.
  void begin_collective(const proto::CollectiveRequest& request, size_t calls_max = 256);
  /// Waits until every call that was begun has been answered. Errors: the first of theirs.
  caf::error finish_calls();
  /// A failed operation is not an error of this call: see the status and `error` of the answer.
  caf::expected<gpu_sim::GetCommStatusResponse> status(communicator_id communicator);
  /// The same for observers: the outcome stays unread for the client that called the operation.
  caf::expected<gpu_sim::GetCommStatusResponse> members(communicator_id communicator);
  /// Waits until nothing is in flight, then returns the same as `status`. Errors: timed_out, with what each rank does.
  caf::expected<gpu_sim::GetCommStatusResponse> wait(communicator_id communicator, caf::timespan within);
  caf::error abort(communicator_id communicator, const std::string& reason);
  caf::error destroy(communicator_id communicator);

  // -- the journal --

  /// The latest records, oldest first.
  caf::expected<std::vector<proto::Record>> journal_tail(uint32_t records_max);
  /// Returns when everything so far is durable.
  caf::error journal_flush();

  /// Any other request of the coordinator's interface. The `error` field of the answer is returned as an error.
  template <class Response, class... Requests>
  caf::expected<Response> ask(Requests&&... requests) {
    return ask_within<Response>(limit_, std::forward<Requests>(requests)...);
  }

  template <class Response, class... Requests>
  caf::expected<Response> ask_within(caf::timespan limit, Requests&&... requests) {
    caf::expected<Response> result = caf::error{};
    auto answer = begin(std::forward<Requests>(requests)...);
    receive(
      answer, limit, [&](Response& x) { result = std::move(x); },
      [&](const caf::error& problem) { result = no_answer(problem, limit); });
    if (result)
      if (auto problem = error_of(*result))
        return problem;
    return result;
  }

  const coordinator_actor& coordinator() const noexcept { return coordinator_; }
  caf::actor_system& system() noexcept { return self_->system(); }

private:
  template <class Response>
  static caf::error error_of(const Response& x) {
    if constexpr (std::is_same_v<Response, gpu_sim::GetCommStatusResponse>)
      return x.epoch() == 0 ? error_in(x) : caf::error{}; // an operation's failure is an answer, not a refusal
    else if constexpr (requires { x.error(); })
      return error_in(x);
    else
      return {};
  }

  caf::error no_answer(const caf::error& problem, caf::timespan limit) const;
  /// The same for a call that the coordinator forwards: the communicator may have ended before it received the call.
  caf::error no_answer_of(communicator_id communicator, const caf::error& problem);
  caf::expected<gpu_sim::CommInitResponse> derive_one(proto::CommDeriveRequest request);
  /// Sends one request for each piece, two at a time, and handles the answers in order. `ask` and `take` get the offset
  /// and size of the piece. A range beyond the device's memory is refused before a byte is sent.
  caf::error copy_in_pieces(device_id device, uint64_t address, uint64_t bytes,
                            const std::function<std::pair<gpu_sim::MemcpyRequest, byte_block>(uint64_t, uint64_t)>& ask,
                            const std::function<caf::error(uint64_t, uint64_t, const byte_block&)>& take);
  /// Offset of the range in the device's memory. Errors: out_of_range, and those of the request.
  caf::expected<uint64_t> place_of(device_id device, uint64_t address, uint64_t bytes);

  using pending_call = decltype(std::declval<caf::scoped_actor&>()->request(
    std::declval<const coordinator_actor&>(), caf::infinite, std::declval<proto::CollectiveRequest>()));

  void take_oldest_answer();

  /// Sends a request without a limit, after the calls that have begun.
  template <class... Requests>
  auto begin(Requests&&... requests) {
    gate_.open();
    return self_->request(coordinator_, caf::infinite, std::forward<Requests>(requests)...);
  }

  /// Waits for the answer to a request that has no limit of its own.
  template <class Answer, class OnResponse, class OnError>
  void receive(Answer& answer, caf::timespan limit, OnResponse on_response, OnError on_error) {
    look_for_answer(answer.id(), limit);
    answer.receive(std::move(on_response), std::move(on_error));
    link_.answered();
  }

  /// Spins for a moment: most answers arrive before a sleeping thread would wake up.
  void look_for_answer(caf::message_id answer, caf::timespan limit);

  caf::scoped_actor self_;
  coordinator_actor coordinator_;
  coordinator_link link_;
  call_gate gate_;
  caf::timespan limit_;
  bool persistent_ = false;
  struct begun_call {
    communicator_id communicator;
    pending_call answer;
  };
  std::deque<begun_call> calls_;
  caf::error call_error_;
};

} // namespace ringmaster
