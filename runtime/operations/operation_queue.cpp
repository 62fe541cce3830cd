#include "runtime/operations/operation_queue.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace ringmaster {

operation& operation_queue::add(operation op, uint64_t rank_group) {
  ensure(op.state == operation::phase::running && op.attempts == 0, "an operation is new when it is added");
  ensure(op.sequence == sequence_number{} && op.leader == sequence_number{}, "an operation is numbered once");
  ensure(!op.slots.empty(), "an operation has ranks");
  ensure(rank_group == 0 || rank_group >= operation::rank_groups,
         "groups of ranks are numbered after those of the host");
  op.sequence = latest_ = latest_.next();
  op.group = rank_group;
  auto& queue = collects(rank_group) ? waiting_ : in_flight_;
  ensure(queue.empty() || queue.back().sequence < op.sequence, "operations are in the order of their calls");
  queue.push_back(std::move(op));
  return queue.back();
}

void operation_queue::restore(std::vector<operation> in_flight, sequence_number latest) {
  ensure(idle() && latest_ == sequence_number{}, "operations are taken over by a queue that has had none");
  for (auto& op : in_flight) {
    ensure(op.sequence != sequence_number{} && op.sequence <= latest, "an operation that is taken over has its number");
    ensure(op.attempts > 0 && !op.slots.empty(), "an operation that is taken over has run");
    if (!op.was_called_by_ranks())
      groups_ = std::max(groups_, op.group);
    in_flight_.push_back(std::move(op));
  }
  latest_ = latest;
}

caf::error operation_queue::open_group() {
  if (group_open_)
    return make_error(
      errc::group_misuse,
      fmt::format("GroupStart on communicator {} within a group: groups do not nest, call GroupEnd first",
                  owner_.value));
  ensure(waiting_.empty(), "nothing waits for GroupEnd while no group is open");
  group_open_ = true;
  return {};
}

caf::error operation_queue::close_group() {
  if (!group_open_)
    return make_error(errc::group_misuse, fmt::format("GroupEnd on communicator {} without GroupStart", owner_.value));
  group_open_ = false;
  if (!waiting_.empty())
    ++groups_;
  for (auto& op : std::exchange(waiting_, {})) {
    ensure(op.attempts == 0, "an operation does not start before GroupEnd");
    ensure(!op.was_called_by_ranks(), "only the host's calls wait for GroupEnd");
    op.group = groups_;
    closed_.push_back(op.sequence);
    in_flight_.push_back(std::move(op));
  }
  return {};
}

std::vector<sequence_number> operation_queue::take_closed() {
  return std::exchange(closed_, {});
}

operation* operation_queue::find(sequence_number sequence) {
  auto i = std::find_if(in_flight_.begin(), in_flight_.end(), [=](auto& op) { return op.sequence == sequence; });
  return i == in_flight_.end() ? nullptr : &*i;
}

bool operation_queue::counts(const proto::RankReport& x) {
  const auto* op = find(sequence_number{x.sequence()});
  return op != nullptr && op->epoch != epoch_number{} && op->epoch == epoch_number{x.epoch()}
         && x.phase() != proto::RankReport::INTERRUPTED;
}

std::vector<operation*> operation_queue::fused_with(operation& op) {
  if (op.leader == sequence_number{})
    return {&op};
  ensure(op.leader <= op.sequence, "the leader of fused operations is the first of them");
  std::vector<operation*> result;
  each([&](operation& other) {
    if (other.leader == op.leader)
      result.push_back(&other);
  });
  ensure(!result.empty(), "an operation is fused with itself at least");
  return result;
}

void operation_queue::decide(operation& op) {
  op.state = operation::phase::decided;
  batch_.note_decided(op);
}

std::vector<operation*> operation_queue::note_finished(operation& op, device_id device) {
  std::vector<operation*> decided;
  for (auto* each : fused_with(op)) {
    each->finished.insert(device);
    if (each->state != operation::phase::running || each->finished.size() != each->slots.size())
      continue;
    decide(*each);
    decided.push_back(each);
  }
  return decided;
}

void operation_queue::note_committed(operation& op, device_id device) {
  for (auto* each : fused_with(op))
    each->committed.insert(device);
}

void operation_queue::start_moving(operation& op) {
  ensure(op.state == operation::phase::running && !op.moving && !op.error, "the data of an operation moves once");
  decide(op);
  op.moving = true;
}

void operation_queue::cancel(operation& op, const caf::error& error) {
  ensure(static_cast<bool>(error), "an operation is cancelled with an error");
  if (op.state != operation::phase::running)
    return;
  for (auto each : fused_with(op)) {
    ensure(each->state == operation::phase::running, "fused operations share their fate");
    ensure(!each->moving, "data that moves is of a decided operation");
    each->state = operation::phase::cancelled;
    each->error = error;
  }
}

void operation_queue::cancel_running(const caf::error& error) {
  for (auto& op : in_flight_)
    cancel(op, error);
}

void operation_queue::cancel_all(const caf::error& error) {
  group_open_ = false;
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(in_flight_));
  waiting_.clear();
  cancel_running(error);
  ensure(std::none_of(in_flight_.begin(), in_flight_.end(),
                      [](auto& op) { return op.state == operation::phase::running; }),
         "after the end no operation runs");
  ensure(waiting_.empty() && !group_open_, "after the end no group is open");
}

void operation_queue::drop(device_id device, const std::string& because) {
  each([&](operation& op) {
    if (op.state == operation::phase::running)
      if (auto why = op.drop(device))
        cancel(op, make_error(code_of(why), fmt::format("operation #{}: {}: {}", op.sequence, render(why), because)));
  });
}

void operation_queue::replace(device_id lost, uint64_t old_min, const gpu_sim::DeviceMetadata& spare,
                              const std::function<caf::error(const operation&)>& input_error) {
  auto moved = [&](uint64_t address) { return address - old_min + spare.minmemaddr().value(); };
  auto id = id_of(spare);
  ensure(id != lost, "a spare is another device than the lost one");
  each([&](operation& op) {
    if (op.state != operation::phase::running)
      return;
    for (auto& x : op.slots) {
      ensure(x.device != id, "a spare has no rank of its own yet");
      if (x.device == lost)
        x = {id, moved(x.input), moved(x.output), moved(x.buffer), x.input_bytes, x.output_bytes};
    }
  });
  each([&](operation& op) {
    if (op.state != operation::phase::running)
      return;
    if (auto why = input_error(op))
      cancel(op,
             make_error(errc::device_lost, fmt::format("device 0x{:x} replaces device 0x{:x}, but not its input: {}",
                                                       id, lost, render(why))));
  });
}

std::vector<operation_queue::memory_range> operation_queue::inputs_of(device_id lost) const {
  std::vector<memory_range> result;
  std::vector<memory_range> made; // by operations that run before
  for (auto* queue : {&in_flight_, &waiting_})
    for (auto& op : *queue)
      for (auto& x : op.slots) {
        if (x.device != lost || op.state != operation::phase::running || x.input_bytes == 0)
          continue;
        bool made_here = std::any_of(made.begin(), made.end(), [&](auto& earlier) {
          return earlier.address <= x.input && x.input + x.input_bytes <= earlier.address + earlier.bytes;
        });
        made.push_back({lost, x.output, x.output_bytes});
        if (!made_here)
          result.push_back({lost, x.input, x.input_bytes});
      }
  return result;
}

std::vector<operation_queue::memory_range> operation_queue::outputs_of(const operation& op) {
  std::vector<memory_range> result;
  result.reserve(op.slots.size());
  for (auto& x : op.slots)
    result.push_back({x.device, x.output, x.output_bytes});
  return result;
}

std::vector<sequence_number> operation_queue::stop() {
  std::vector<sequence_number> cancelled;
  for (auto& op : in_flight_) {
    ensure(!op.moving, "no stream is stopped while data moves");
    if (op.state == operation::phase::cancelled)
      cancelled.push_back(op.sequence);
    else if (op.state == operation::phase::running)
      op.epoch = {};
  }
  return cancelled;
}

std::vector<operation> operation_queue::take(const std::function<bool(const operation&)>& ended) {
  std::vector<operation> result;
  for (auto i = in_flight_.begin(); i != in_flight_.end();)
    if (ended(*i)) {
      ensure(result.empty() || result.back().sequence != i->sequence, "an operation ends once");
      ensure(i->sequence <= latest_, "an operation was numbered when it was added");
      result.push_back(std::move(*i));
      i = in_flight_.erase(i);
    } else {
      ++i;
    }
  return result;
}

std::vector<operation> operation_queue::take_cancelled() {
  return take([](const operation& op) { return op.state == operation::phase::cancelled; });
}

std::vector<operation> operation_queue::take_committed(const std::vector<rank_device>& ranks) {
  return take([&](const operation& op) {
    return op.state == operation::phase::decided && !op.moving && std::all_of(ranks.begin(), ranks.end(), [&](auto& x) {
             return x.lost || op.finished.count(x.id()) == 0 || op.committed.count(x.id()) != 0;
           });
  });
}

} // namespace ringmaster
