#pragma once

#include <ringmaster/strategy/group.hpp>
#include <ringmaster/strategy/value.hpp>

#include <array>
#include <coroutine>
#include <string_view>

namespace ringmaster::training {

enum class op : uint8_t {
  load_weights,
  input,
  forward,
  backward,
  backward_input,
  backward_weight,
  keys,
  attend,
  attend_backward,
  loss,
  add,
  slice,
  update,
  finish,
  offload,
  fetch,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send,
  receive
};

std::string_view name_of(op x);

constexpr bool is_collective(op x) {
  return x >= op::all_reduce && x <= op::broadcast;
}

constexpr bool is_communication(op x) {
  return x >= op::all_reduce;
}

/// Whether its time is counted, in the simulator and in pictures; the others prepare.
constexpr bool takes_time(op x) {
  return x != op::input && x != op::add && x != op::slice && x != op::finish;
}

/// An operation of a rank, under way from when it is begun until it has ended.
struct pending {
  op what{};
  bool aside = false; ///< On the rank's second stream, beside what it does meanwhile.
  bool begun = false; ///< Of one aside: it has come to its turn.
  bool ended = false; ///< The results are there.
  uint32_t rank = 0;
  uint32_t peer = 0;  ///< Of send and receive; the root of a broadcast.
  group among{};      ///< Of collectives.
  value_tag argument; ///< The value that is sent, reduced, gathered, updated; else layer, samples, tensor shard; of
                      ///< attention the positions that attend, and the run of keys that they attend to.
  std::array<value_tag, 2> results{}; ///< Of collectives and receives, the executor says what came.
  std::array<uint64_t, 3> memory{};   ///< Of the values that it is given, in the order of the rank's parameters; then,
                                      ///< from its end on, where the executor has put the results.
  storage consumed;                   ///< Memory of the argument, where the operation ends it.
  std::coroutine_handle<> waiter;     ///< To be resumed at the end.
  double note = 0;                    ///< The executor's own.
};

/// Whether it waits for other ranks. A collective of a group of one does not.
inline bool needs_others(const pending& x) {
  return is_communication(x.what) && !(is_collective(x.what) && x.among.count == 1);
}

// How operations reach their executor.

/// Begins an operation; returns whether it has finished already.
bool begin(executor& on, pending& x);
/// Waits for one aside; returns whether it has finished already.
bool await(executor& on, pending& x);
/// Whether a rank has made an error, so that no operation continues.
bool has_failed(const executor& on);
/// Ends the run: the operation was refused, and this is why.
void refuse(executor& on, const pending& x, std::string_view why);
/// Ends the run: "rank 3 has never awaited its forward of the input of layer 2".
void misuse(executor& on, const pending& x, std::string_view how);
/// Throws std::logic_error: a result was taken before its operation had finished, or twice.
[[noreturn]] void throw_not_finished(const pending& x);

} // namespace ringmaster::training
