#include "gateway/course/all_reduce_calls.hpp"

#include <course.pb.h>
#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"

#include <chrono>
#include <fmt/format.h>
#include <functional>
#include <memory>

namespace ringmaster::gateway {

namespace {

/// A call for an all-reduce, in the cluster's terms except for the addresses.
struct wanted_all_reduce {
  uint64_t communicator = 0; ///< Its id for clients.
  std::string algorithm;
  gpu_sim::ReduceOp op = gpu_sim::SUM;
  uint64_t elements = 0;
  std::map<uint32_t, uint64_t> addresses; ///< As the client has named them, by rank.
};

/// The request for the communicator's present members. A rank without an address has the lowest of its device's.
/// Errors: invalid_argument; out_of_range.
caf::expected<proto::CollectiveRequest> translate(
  const course_desk_state& desk, const course_communicator& communicator, const wanted_all_reduce& wanted) {
  for (auto& [rank, address] : wanted.addresses)
    if (rank >= communicator.first_size())
      return invalid(fmt::format("memAddrs names rank {}, and the communicator has ranks 0 to {}", rank,
                                 communicator.first_size() - 1));
  proto::CollectiveRequest result;
  result.set_comm_id(communicator.now().value);
  auto& what = *result.mutable_collective();
  what.set_kind(proto::ALL_REDUCE);
  what.set_algorithm(wanted.algorithm);
  what.set_datatype(desk.form().datatype);
  what.set_op(wanted.op);
  what.set_count(wanted.elements);
  for (auto& member : communicator.members()) {
    const auto given = wanted.addresses.find(member.first_rank);
    const auto seen = desk.devices->seen_memory(member.first);
    const auto address = given == wanted.addresses.end() ? seen.min : given->second;
    const auto bytes = desk.form().bytes_of(wanted.elements);
    if (address < seen.min || address > seen.max || bytes > seen.max - address)
      return make_error(errc::out_of_range,
                        fmt::format("rank {}: {:#x} bytes at {:#x} are not within the memory of its device, which is "
                                    "[{:#x}, {:#x})",
                                    member.first_rank, bytes, address, seen.min, seen.max));
    result.add_inputs(member.present.min + (address - seen.min));
  }
  return result;
}

/// An all-reduce from the call to its end. Its error is the call's.
class all_reduce_run : public std::enable_shared_from_this<all_reduce_run> {
public:
  using answer = std::function<void(caf::timespan took, size_t ranks)>;

  all_reduce_run(course_desk_state& desk, call_pointer call, wanted_all_reduce wanted, answer when_done)
    : desk_(desk), call_(std::move(call)), wanted_(std::move(wanted)), when_done_(std::move(when_done)),
      began_(desk.now()) {}

  void enqueue() {
    auto* communicator = find();
    if (communicator == nullptr)
      return;
    auto request = translate(desk_, *communicator, wanted_);
    if (!request)
      return call_->fail(request.error());
    const bool waits = !communicator->in_group;
    desk_.ask_or<proto::CollectiveResponse>(
      call_, [me = shared_from_this(), waits](const proto::CollectiveResponse&) { me->enqueued(waits); },
      [me = shared_from_this()](const caf::error& problem) { me->refused(problem); }, std::move(*request));
  }

private:
  course_communicator* find() { return desk_.communicator_for(call_, wanted_.communicator); }

  void enqueued(bool waits) {
    auto* communicator = find();
    if (communicator == nullptr)
      return;
    communicator->has_run = true;
    communicator->failed = {};
    if (!waits)
      return finish(*communicator);
    const auto left = call_->left(desk_.now());
    communicator->last_used = desk_.now() + left;
    proto::CommWaitRequest wait;
    wait.set_comm_id(communicator->now().value);
    wait.set_timeout_ns(static_cast<uint64_t>(left.count()));
    desk_.ask<gpu_sim::GetCommStatusResponse>(
      call_, [me = shared_from_this()](const gpu_sim::GetCommStatusResponse& x) { me->ended(x); }, std::move(wait));
  }

  void ended(const gpu_sim::GetCommStatusResponse& x) {
    auto* communicator = find();
    if (communicator == nullptr)
      return;
    communicator->last_used = desk_.now();
    desk_.note_members(*communicator, x);
    if (x.status() == gpu_sim::SUCCESS)
      return finish(*communicator);
    if (x.status() == gpu_sim::FAILED)
      communicator->failed = error_in(x);
    call_->fail(error_in(x));
  }

  /// The members may have changed since they were last seen: then the call is made again, once.
  void refused(const caf::error& problem) {
    auto* communicator = find();
    if (communicator == nullptr)
      return;
    if (is_second_)
      return call_->fail(problem);
    is_second_ = true;
    gpu_sim::GetCommStatusRequest request;
    request.set_commid(communicator->now().value);
    request.set_readonly(true);
    desk_.ask<gpu_sim::GetCommStatusResponse>(
      call_, [me = shared_from_this(), problem](const gpu_sim::GetCommStatusResponse& x) { me->again(x, problem); },
      std::move(request));
  }

  void again(const gpu_sim::GetCommStatusResponse& x, const caf::error& problem) {
    auto* communicator = find();
    if (communicator == nullptr)
      return;
    const auto former = communicator->devices();
    desk_.note_members(*communicator, x);
    if (communicator->devices() == former)
      return call_->fail(problem);
    enqueue();
  }

  void finish(const course_communicator& communicator) {
    when_done_(desk_.now() - began_, communicator.devices().size());
  }

  course_desk_state& desk_;
  call_pointer call_;
  wanted_all_reduce wanted_;
  answer when_done_;
  caf::actor_clock::time_point began_;
  bool is_second_ = false;
};

template <class Request>
std::map<uint32_t, uint64_t> addresses_of(const Request& request) {
  std::map<uint32_t, uint64_t> result;
  for (auto& [rank, address] : request.memaddrs())
    result[rank] = address.value();
  return result;
}

constexpr auto naive = "naive";

/// Both have the same request and answer.
void run(course_desk_state& desk, const call_pointer& call, std::string algorithm) {
  auto request = request_of<course::AllReduceRingRequest>(call);
  if (!request)
    return;
  auto op = desk.form().reduce_op(request->op());
  if (!op)
    return call->fail(op.error());
  auto elements = desk.form().elements(request->count());
  if (!elements)
    return call->fail(elements.error());
  wanted_all_reduce wanted{request->commid(), std::move(algorithm), *op, *elements, addresses_of(*request)};
  std::make_shared<all_reduce_run>(desk, call, std::move(wanted), [call](caf::timespan, size_t) {
    course::AllReduceRingResponse answer;
    answer.set_success(true);
    call->answer(answer);
  })->enqueue();
}

} // namespace

void all_reduce_ring(course_desk_state& desk, const call_pointer& call) {
  run(desk, call, std::string{course_algorithm().name});
}

void all_reduce(course_desk_state& desk, const call_pointer& call) {
  run(desk, call, naive);
}

void naive_all_reduce(course_desk_state& desk, const call_pointer& call) {
  auto request = request_of<course::NaiveAllReduceRequest>(call);
  if (!request)
    return;
  auto form = desk.form();
  const bool has_latency = request->memaddrs().empty();
  if (has_latency)
    form.count = dialect::count_unit::bytes;
  auto op = has_latency ? gpu_sim::SUM : form.reduce_op(request->op());
  if (!op)
    return call->fail(op.error());
  auto elements = form.elements(request->count());
  if (!elements)
    return call->fail(elements.error());
  wanted_all_reduce wanted{request->commid(), naive, *op, *elements, addresses_of(*request)};
  auto answer = [call, bytes = form.bytes_of(*elements)](caf::timespan took, size_t ranks) {
    course::NaiveAllReduceResponse result;
    result.set_success(true);
    result.set_totaltimems(std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
    result.set_totaldatatransferred(static_cast<int64_t>(2 * (ranks - 1) * bytes)); // to rank 0 and back
    call->answer(result);
  };
  std::make_shared<all_reduce_run>(desk, call, std::move(wanted), std::move(answer))->enqueue();
}

} // namespace ringmaster::gateway
