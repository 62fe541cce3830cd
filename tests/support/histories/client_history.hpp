#pragma once

#include "tests/support/histories/linearization.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster::test {

/// A call of a client about a communicator, with its answer.
struct client_call {
  enum class kind {
    make,    ///< CommInit.
    write,   ///< Puts the input of an operation into a rank's memory.
    run,     ///< An operation, from its call until its end is known.
    read,    ///< Reads what a rank's memory has in the place of an operation.
    status,  ///< Its members now.
    destroy, ///< CommDestroy.
    look     ///< Whether the cluster lists it.
  };
  enum class outcome {
    done,
    failed,  ///< With a reason. Of a run: it has its number, and has changed no memory.
    broken,  ///< A run that failed and says that it may have overwritten inputs.
    refused, ///< A run that got no number; a communicator that was not made.
    gone     ///< There is no such communicator.
  };
  /// Devices, sorted.
  using group = std::vector<uint64_t>;

  kind what = kind::status;
  call_times times = {};
  uint64_t communicator = 0; ///< 0: of a `make` that made none, or of which that is not known.
  uint64_t operation
    = 0;               ///< Of write, run, read: the client's number for it. It has a place in each rank's memory alone.
  uint64_t device = 0; ///< Of write and read.

  outcome answer = outcome::done;
  std::string reason = {}; ///< Of an error.
  uint64_t sequence = 0;   ///< Of a run: its number; 0: not known.
  /// Of a run: over one of these it has ended, as far as its answer tells. Of a read: the values are its result over
  /// each of these.
  std::vector<group> groups = {};
  bool is_input = false; ///< Of a read: the values are those that were written.
  uint64_t epoch = 0;    ///< Of a status.
  group members = {};    ///< Of make and status.
  bool may_end = false;  ///< Of a make: it may end by itself, since all of its ranks may be lost.
};

std::string text_of(const client_call& x);

/// A communicator as its clients may think of it: one call after the other.
///
/// - It is made once, and serves until it is destroyed.
/// - Each operation that is taken has the next number: none is lost, and none is run twice.
/// - An operation ends once, over one group: all ranks of it have that group's result. One that has failed has left the
///   inputs as they were, or says that it may not have.
/// - Epochs rise, and each has its members.
struct communicator_model {
  struct place {
    enum class content { inputs, result, damaged };
    uint64_t operation = 0;
    content has = content::inputs;
    client_call::group ranks = {}; ///< Of a result.
    bool operator==(const place&) const = default;
  };
  struct state {
    enum class life { not_made, alive, ended };
    life is = life::not_made;
    bool may_end = false;
    uint64_t latest = 0; ///< Number of an operation.
    uint64_t epoch = 0;
    client_call::group members = {};
    std::vector<place> places = {}; ///< Those of the latest operations, which are still read.
    bool operator==(const state&) const = default;
  };

  static size_t hash(const state& x);
  static std::vector<state> next(const state& before, const client_call& call);
  static bool alike(const client_call& a, const client_call& b) {
    return a.what == b.what && a.operation == b.operation && a.groups == b.groups;
  }

private:
  static constexpr size_t places_max = 64; ///< More than any client has in flight.
};

/// Calls of all clients of a cluster. One thread at a time.
class client_history {
public:
  /// Returns its number. It has no answer yet.
  size_t begin(client_call x, uint64_t now_ns);
  /// It is answered. Fill in what it says, through the reference.
  client_call& end(size_t number, uint64_t now_ns);
  /// To say more of one that has no answer.
  client_call& at(size_t number) { return calls_.at(number); }
  const std::vector<client_call>& calls() const { return calls_; }

  /// The communicators that the cluster lists now.
  void note_listed(const std::vector<uint64_t>& communicators, uint64_t asked_ns, uint64_t now_ns);

  struct judgement {
    std::string problem;             ///< Why no order of the calls explains the answers; empty: none such was found.
    std::vector<uint64_t> undecided; ///< Communicators whose calls have more orders than can be tried.
  };
  judgement judge() const;
  /// Empty: for every communicator an order explains the answers.
  std::string problem() const;

private:
  std::vector<client_call> calls_;
  std::vector<uint64_t> listed_; ///< By the latest look.
};

} // namespace ringmaster::test
