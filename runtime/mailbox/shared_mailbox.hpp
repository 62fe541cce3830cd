#pragma once

#include "runtime/reduction/reducer.hpp"
#include "runtime/schedule/collective.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ringmaster {

/// Shared memory in which the ranks of a communicator, each a process of this host, run small collectives without a
/// message. Each call has a number, the same on all ranks. A rank puts its input into its slot and says that it has
/// arrived.
///
///   open --all ranks have arrived with the same call--> met: every rank computes its output from all slots
///     |
///     +-- a rank cannot meet, or waits no longer -----> by messages: all ranks send the call, where it is compared,
///                                                       watched and limited like any other
///
/// Once a call is met it makes no difference if a rank dies. One word decides between the two outcomes, so all ranks
/// see the same one.
///
/// No rank writes to another rank's slots or memory. A rank may be one call ahead of the others: slots come in pairs.
/// The idea is that of small all-reduces in MPI's shared-memory modules (Graham & Shipman 2008), with a second outcome.
///
/// The object is a view of memory that was zeroed and that all ranks share. To be used by one thread at a time.
class shared_mailbox {
public:
  /// What must be equal on all ranks.
  struct fingerprint {
    uint64_t what = 0;
    uint64_t count = 0;

    friend bool operator==(const fingerprint&, const fingerprint&) = default;
  };

  enum class outcome : uint8_t {
    open, ///< Some ranks have not arrived.
    met,
    by_messages
  };

  static constexpr uint32_t ranks_max = 1024;

  /// The size of the memory, for slots of `slot_bytes`.
  static uint64_t bytes_of(uint32_t ranks, uint64_t slot_bytes);

  /// `memory` is aligned to a page, and has bytes_of(ranks, slot_bytes).
  shared_mailbox(std::byte* memory, uint32_t ranks, uint64_t slot_bytes, uint32_t rank);

  /// This rank takes part. False: another handle of the rank does already; then no call is met from now on.
  bool join();
  /// No call is met from now on.
  void close();
  /// Whether this rank still takes part. Where the file was cut and made longer again, its zeros look as if no rank had
  /// joined.
  bool intact() const;

  /// Whether it makes sense to wait for the others at this call: all have joined, and are at most a call behind.
  bool others_are_near(uint64_t number) const;
  /// This rank's slot for its input of the call; only if `others_are_near` and the call before has been settled.
  std::span<std::byte> slot(uint64_t number) const { return {slot_of(rank_, number), slot_bytes_}; }
  /// A rank's input, from when the call is met until this rank comes to the next.
  std::byte* slot_of(uint32_t rank, uint64_t number) const;

  /// This rank has come to the call; its input is in its slot. `number`: from 1 on, rising.
  void arrive(uint64_t number, const fingerprint& what);
  /// This rank makes the call by messages.
  void pass(uint64_t number);
  /// The outcome of the call that this rank has come to.
  outcome look(uint64_t number, const fingerprint& what);
  /// This rank waits no longer: the call is made by messages, unless it has been met.
  outcome give_up(uint64_t number) { return settle(number, outcome::by_messages); }

  // To sleep until a rank arrives: begin, look once more, sleep while `changes` is what it was (futex(2)), end.
  uint32_t begin_to_wait();
  void end_to_wait();
  std::atomic<uint32_t>& changes() const;

private:
  struct head;
  struct arrival;

  arrival& arrival_of(uint32_t rank) const;
  outcome outcome_of(uint64_t number) const;
  outcome settle(uint64_t number, outcome how);
  void wake_waiters();

  head* head_;
  uint32_t ranks_;
  uint32_t rank_;
  uint64_t slot_bytes_;
  uint64_t called_ = 0; ///< The latest call that this rank has come to.
};

/// Whether `output_of` knows the kind.
bool has_one_output(proto::CollectiveKind kind);

/// Computes the output of `request.rank` from all ranks' inputs, with the same bits as a shared-memory operation, which
/// adds in rank order. `inputs`: by rank; those that the kind does not use may be nullptr. `combine`: where the kind
/// reduces; the inputs of PREMUL_SUM have been multiplied. `out` overlaps no input.
void output_of(proto::CollectiveKind kind, const plan_request& request, const reducer* combine, uint64_t element_bytes,
               std::span<const std::byte* const> inputs, std::byte* out);

} // namespace ringmaster
