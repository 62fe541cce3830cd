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

/// The coordinator as a program that is no actor calls it: each call waits for its answer, at most `limit`. Errors are
/// values with a sentence, and with the code that whoever said no gave it, such as unknown_device, too_few_devices or
/// out_of_memory; timed_out and device_lost where the coordinator does not answer. One thread at a time.
///
/// What it has made and not given back, communicators and ranges of memory, goes with it: when it ends, its process is
/// killed or the connection breaks, the coordinator destroys and frees them, but for what was asked to stay.
class client {
public:
  /// How long the coordinator may take to answer.
  static constexpr caf::timespan usual_limit = std::chrono::seconds{30};
  /// Calls that are begun and not answered; the next one waits for the oldest. So a program that calls ahead of its
  /// cluster is slowed down, and other clients are not.
  static constexpr size_t calls_under_way_max = 512;

  client(caf::actor_system& system, coordinator_actor coordinator, caf::timespan limit = usual_limit);

  /// Whether what it makes from now on stays when it is gone.
  void set_persistent(bool stays) { persistent_ = stays; }

  // -- devices --

  /// Who is there, at once or when at least `devices_min` are. Errors: timed_out, with both numbers.
  caf::expected<proto::ClusterInfo> devices(uint32_t devices_min = 0, caf::timespan within = {});
  /// Everything about the cluster: who is there, how each communicator is, what is gone and why.
  caf::expected<proto::ClusterInfo> info();
  /// What everybody is doing, at once: nobody that stands still is waited for.
  caf::expected<proto::ClusterStatus> cluster_status();
  /// A range in the device's memory. `bytes` > 0.
  caf::expected<uint64_t> allocate(device_id device, uint64_t bytes, uint64_t alignment = 256);
  caf::error free(device_id device, uint64_t address);
  /// Copies the whole block to `address` on the device, behind what its default stream has queued.
  caf::error copy_to_device(device_id device, uint64_t address, byte_block block);
  /// Copies `bytes` from `address` on the device.
  caf::expected<byte_block> copy_to_host(device_id device, uint64_t address, uint64_t bytes);
  /// The node's devices leave their communicators when what runs has ended, then it ends; waits for that. What it has
  /// left, in sentences. Errors: refused; timed_out, saying what was waited for.
  caf::expected<std::vector<std::string>> drain(const std::string& node, caf::timespan within);
  /// The process of a rank has ended: whoever waits for it in vain hears so. `group`: "world" under caf-run.
  caf::error tell_absent(const std::string& group, uint32_t rank, const std::string& cause);
  caf::error inject(device_id device, const proto::FaultRequest& fault);

  // -- communicators --

  /// Ranks 0..n-1 on n free devices, with the cluster's failure policy or this one. `deterministic`: whether reductions
  /// add in rank order, whatever the algorithm; without it as the cluster is configured.
  caf::expected<gpu_sim::CommInitResponse> comm_init(uint32_t ranks, std::optional<bool> deterministic = {});
  caf::expected<gpu_sim::CommInitResponse> comm_init(uint32_t ranks, proto::FailurePolicy policy,
                                                     std::optional<bool> deterministic = {});
  /// As the request has it, but for `outlivesClient`: a name, devices and a policy at once.
  caf::expected<gpu_sim::CommInitResponse> comm_init(gpu_sim::CommInitRequest request);
  /// Ranks 0..n-1 on these devices, whatever other communicators they are in.
  caf::expected<gpu_sim::CommInitResponse> comm_init(const std::vector<device_id>& devices);
  /// Communicators of another one's ranks, which stays as it is. `colors` and `keys` by rank: those of one colour go
  /// together, ordered by key, then by rank; below 0: into none. By colour, ascending.
  caf::expected<std::vector<gpu_sim::CommInitResponse>> split(
    communicator_id communicator, const std::vector<int32_t>& colors, const std::vector<int64_t>& keys = {});
  caf::expected<gpu_sim::CommInitResponse> duplicate(communicator_id communicator);
  /// Without these ranks.
  caf::expected<gpu_sim::CommInitResponse> shrink(communicator_id communicator, const std::vector<uint32_t>& ranks);
  /// With so many free devices more, or with these; they get the ranks behind the old ones.
  caf::expected<gpu_sim::CommInitResponse> grow(communicator_id communicator, uint32_t devices);
  caf::expected<gpu_sim::CommInitResponse> grow(communicator_id communicator, const std::vector<device_id>& devices);
  caf::error group_start(communicator_id communicator);
  caf::error group_end(communicator_id communicator);
  /// Enqueues; returns the operation's number.
  caf::expected<sequence_number> all_reduce_ring(const gpu_sim::AllReduceRingRequest& request);
  caf::expected<sequence_number> collective(const proto::CollectiveRequest& request);
  /// Enqueues without waiting for the answer; at most `calls_max` (and `calls_under_way_max`) are under way at
  /// once, the oldest is waited for.
  /// Those that are begun while others have not been answered may go together: see `call_gate`. The first error of any
  /// of them is kept for `finish_calls`. Until then the buffers are theirs: copies, and calls on other communicators,
  /// may overtake what was begun. They may wait for calls behind them, and go with them (`answer_may_wait`); a program
  /// that measures an algorithm asks for a walk of each (`walks_alone`).
  void begin_collective(const proto::CollectiveRequest& request, size_t calls_max = 256);
  /// Waits until every call begun has been answered. Errors: the first of theirs.
  caf::error finish_calls();
  /// An operation that failed is no error here: see the answer's status and its `error`.
  caf::expected<gpu_sim::GetCommStatusResponse> status(communicator_id communicator);
  /// The same for those who look on: who has called is still to be told.
  caf::expected<gpu_sim::GetCommStatusResponse> members(communicator_id communicator);
  /// Waits until nothing is in flight, then the same as `status`. Errors: timed_out, saying which rank does what.
  caf::expected<gpu_sim::GetCommStatusResponse> wait(communicator_id communicator, caf::timespan within);
  caf::error abort(communicator_id communicator, const std::string& reason);
  caf::error destroy(communicator_id communicator);

  // -- the journal --

  /// The latest records, oldest first.
  caf::expected<std::vector<proto::Record>> journal_tail(uint32_t records_max);
  /// Returns when everything so far is durable.
  caf::error journal_flush();

  /// Any other request of the coordinator's interface, with the answer's `error` field as an error.
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
  /// The same for a call that the coordinator hands on: the communicator may have ended before it took it.
  caf::error no_answer_of(communicator_id communicator, const caf::error& problem);
  caf::expected<gpu_sim::CommInitResponse> derive_one(proto::CommDeriveRequest request);
  /// Makes one request for each piece, two at a time, and takes their answers in order: `ask` and `take` get its offset
  /// and its bytes. A range beyond the device's memory is refused before a byte is sent.
  caf::error copy_in_pieces(device_id device, uint64_t address, uint64_t bytes,
                            const std::function<std::pair<gpu_sim::MemcpyRequest, byte_block>(uint64_t, uint64_t)>& ask,
                            const std::function<caf::error(uint64_t, uint64_t, const byte_block&)>& take);
  /// Where the range begins, from the beginning of the device's memory. Errors: out_of_range, and those of asking.
  caf::expected<uint64_t> place_of(device_id device, uint64_t address, uint64_t bytes);

  using pending_call = decltype(std::declval<caf::scoped_actor&>()->request(
    std::declval<const coordinator_actor&>(), caf::infinite, std::declval<proto::CollectiveRequest>()));

  void take_oldest_answer();

  /// Asks without a limit, behind the calls that have begun.
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

  /// Most answers are there before a thread that sleeps would be awake.
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
