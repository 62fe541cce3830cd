#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ringmaster {

/// A page of shared memory on which the ranks of a communicator, each a process of this host, meet for small
/// collectives without a message. Each call has a number, the same on all ranks. A rank puts its input into its slot
/// and says that it has arrived; when all have, with the same call, the call is *met*: all inputs lie in slots, each
/// rank computes its own output from them, and it makes no difference who dies. Whoever cannot meet, or will not wait
/// any longer, settles the call as *apart*: then all ranks make it by messages, where it is compared, watched and
/// limited as every other. One word decides between the two, so that all ranks come to the same.
///
/// Nobody writes to another rank's slots or memory. A rank may be one call ahead of the others: slots come in pairs.
/// The idea is that of small all-reduces in MPI's shared-memory modules (Graham & Shipman 2008), with a way out.
///
/// Lays itself over memory that was zeroed and that all ranks share. Of one thread at a time.
class shared_mailbox {
public:
  /// What all ranks must call alike.
  struct fingerprint {
    uint64_t what = 0;
    uint64_t count = 0;

    friend bool operator==(const fingerprint&, const fingerprint&) = default;
  };

  enum class outcome : uint8_t {
    open, ///< Some have not come.
    met,
    apart ///< Make the call by messages.
  };

  static constexpr uint32_t ranks_max = 1024;

  /// Of the memory, for slots of `slot_bytes`.
  static uint64_t bytes_of(uint32_t ranks, uint64_t slot_bytes);

  /// `memory` is aligned to a page, and has bytes_of(ranks, slot_bytes).
  shared_mailbox(std::byte* memory, uint32_t ranks, uint64_t slot_bytes, uint32_t rank);

  /// This rank is there. False: it is already, by another handle; then nobody can meet here any more.
  bool join();
  /// Nobody meets here from now on.
  void close();
  /// Whether this rank is still there: where the file was cut and made longer again, its zeros look as if nobody had
  /// come.
  bool intact() const;

  /// Whether it makes sense to wait for the others at this call: all have joined, and none is more than a call behind.
  bool others_are_near(uint64_t number) const;
  /// Where this rank's input of the call goes; only where `others_are_near` and the call before has been settled.
  std::span<std::byte> slot(uint64_t number) const { return {slot_of(rank_, number), slot_bytes_}; }
  /// Every rank's input, once the call is met and until this rank comes to the next.
  std::byte* slot_of(uint32_t rank, uint64_t number) const;

  /// This rank has come to the call; its input is in its slot. `number`: from 1 on, each once.
  void arrive(uint64_t number, const fingerprint& what);
  /// This rank makes the call by messages.
  void pass(uint64_t number);
  /// What has become of a call that this rank has come to.
  outcome look(uint64_t number, const fingerprint& what);
  /// This rank will not wait for it any longer: it is apart, unless it has been met.
  outcome give_up(uint64_t number) { return settle(number, outcome::apart); }

  // To sleep until somebody arrives: begin, look once more, sleep while `changes` is what it was (futex(2)), end.
  uint32_t begin_to_wait();
  void end_to_wait();
  std::atomic<uint32_t>& changes() const;

private:
  struct head;
  struct arrival;

  arrival& arrival_of(uint32_t rank) const;
  outcome outcome_of(uint64_t number) const;
  outcome settle(uint64_t number, outcome how);
  void tell_waiters();

  head* head_;
  uint32_t ranks_;
  uint32_t rank_;
  uint64_t slot_bytes_;
};

} // namespace ringmaster
