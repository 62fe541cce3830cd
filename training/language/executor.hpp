#pragma once

#include "training/language/group.hpp"
#include "training/language/value.hpp"

#include <caf/error.hpp>

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

/// "rank 3, forward: why", as errc::invalid_argument.
caf::error refused(const pending& x, std::string_view why);
/// The same with the code of `why`.
caf::error refused(const pending& x, const caf::error& why);
/// "rank 3 has never awaited its forward of the input of layer 2, samples 0-3", as errc::invalid_argument.
caf::error misused(const pending& x, std::string_view how);

/// What carries out the operations of a strategy's ranks: a simulator, or devices.
class executor {
public:
  virtual ~executor() = default;

  /// Begins; returns whether it has ended already. Else `x` stays where it is until its waiter is resumed, or for ever
  /// where it has failed.
  virtual bool begin(pending& x) = 0;
  /// For one aside that has been begun: returns whether it has ended; else its waiter is resumed when it has.
  virtual bool await(pending& x) = 0;
  /// The rank has made an error: none of its operations continues.
  virtual void fail(uint32_t rank, caf::error why) = 0;
  virtual bool failed() const = 0;
  virtual void release(uint32_t rank, uint64_t memory) noexcept = 0;
};

} // namespace ringmaster::training
