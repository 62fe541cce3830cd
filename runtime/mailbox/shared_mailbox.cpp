#include "runtime/mailbox/shared_mailbox.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reduction.hpp"

#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace ringmaster {

namespace {

constexpr uint64_t line_bytes = 64;
constexpr uint64_t memory_page_bytes = 4096;

constexpr uint64_t rounded(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

// The settled word: the number of the latest call that was met, and the count of later calls that were settled, all of
// them by messages.
constexpr int since_bits = 24;
constexpr uint64_t since_max = (1u << since_bits) - 1;
constexpr uint64_t met_in(uint64_t settled) {
  return settled >> since_bits;
}
constexpr uint64_t latest_in(uint64_t settled) {
  return met_in(settled) + (settled & since_max);
}

} // namespace

/// An arrival's word: the number of the call, and whether it is made by messages.
struct alignas(line_bytes) shared_mailbox::arrival {
  std::atomic<uint64_t> word;
  std::atomic<uint32_t> joined;
  fingerprint calls[2]; ///< By the number's last bit.
};

struct alignas(line_bytes) shared_mailbox::head {
  std::atomic<uint64_t> settled;
  alignas(line_bytes) std::atomic<uint32_t> closed;
  alignas(line_bytes) std::atomic<uint32_t> waiters;
  std::atomic<uint32_t> changes;

  static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free,
                "processes share them");
};

uint64_t shared_mailbox::bytes_of(uint32_t ranks, uint64_t slot_bytes) {
  auto front = rounded(sizeof(head) + ranks * sizeof(arrival), memory_page_bytes);
  return front + 2 * ranks * rounded(slot_bytes, line_bytes);
}

shared_mailbox::shared_mailbox(std::byte* memory, uint32_t ranks, uint64_t slot_bytes, uint32_t rank)
  : head_(reinterpret_cast<head*>(memory)), ranks_(ranks), rank_(rank), slot_bytes_(rounded(slot_bytes, line_bytes)) {
  ensure(memory != nullptr && reinterpret_cast<uintptr_t>(memory) % line_bytes == 0,
         "a mailbox starts with a cache line");
  ensure(ranks <= ranks_max, "a mailbox has a limited number of ranks");
  ensure(rank < ranks, "a rank has its place in the mailbox");
}

shared_mailbox::arrival& shared_mailbox::arrival_of(uint32_t rank) const {
  return reinterpret_cast<arrival*>(head_ + 1)[rank];
}

std::byte* shared_mailbox::slot_of(uint32_t rank, uint64_t number) const {
  auto front = rounded(sizeof(head) + ranks_ * sizeof(arrival), memory_page_bytes);
  return reinterpret_cast<std::byte*>(head_) + front + ((number & 1) * ranks_ + rank) * slot_bytes_;
}

bool shared_mailbox::join() {
  if (arrival_of(rank_).joined.exchange(1) == 0)
    return true;
  close(); // two handles of one rank count its calls differently
  return false;
}

void shared_mailbox::close() {
  head_->closed.store(1);
  wake_waiters();
}

bool shared_mailbox::intact() const {
  return arrival_of(rank_).joined.load() != 0;
}

bool shared_mailbox::others_are_near(uint64_t number) const {
  if (head_->closed.load() != 0 || number - met_in(head_->settled.load()) > since_max / 2)
    return false;
  for (uint32_t rank = 0; rank < ranks_; ++rank)
    if (auto& x = arrival_of(rank); x.joined.load() == 0 || (x.word.load() >> 1) + 1 < number)
      return false;
  return true;
}

void shared_mailbox::arrive(uint64_t number, const fingerprint& what) {
  auto& own = arrival_of(rank_);
  ensure(number > 0, "calls are counted from 1");
  ensure(number > called_, "a rank comes to each call once, in order");
  called_ = number;
  own.calls[number & 1] = what;
  own.word.store(number << 1);
  wake_waiters();
}

void shared_mailbox::pass(uint64_t number) {
  ensure(number > called_, "a rank comes to each call once, in order");
  called_ = number;
  arrival_of(rank_).word.store(number << 1 | 1);
  settle(number, outcome::by_messages);
}

shared_mailbox::outcome shared_mailbox::look(uint64_t number, const fingerprint& what) {
  ensure(number == called_, "a rank looks at the call that it has come to");
  if (auto known = outcome_of(number); known != outcome::open)
    return known;
  if (head_->closed.load() != 0)
    return settle(number, outcome::by_messages);
  bool all = true;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    auto& x = arrival_of(rank);
    auto word = x.word.load();
    if (word >> 1 < number)
      all = false;
    else if (word != number << 1 || x.calls[number & 1] != what)
      return settle(number, outcome::by_messages); // unless it has been met: then the other rank is one call ahead
  }
  return all ? settle(number, outcome::met) : outcome::open;
}

/// A call is never looked at after a later one was met: that one took this rank's arrival.
shared_mailbox::outcome shared_mailbox::outcome_of(uint64_t number) const {
  auto settled = head_->settled.load();
  if (latest_in(settled) < number)
    return outcome::open;
  return met_in(settled) == number ? outcome::met : outcome::by_messages;
}

shared_mailbox::outcome shared_mailbox::settle(uint64_t number, outcome how) {
  auto settled = head_->settled.load();
  while (latest_in(settled) < number) {
    if (how == outcome::by_messages && number - met_in(settled) > since_max)
      return how; // no rank has tried to meet for that many calls
    auto next = how == outcome::met ? number << since_bits : met_in(settled) << since_bits | (number - met_in(settled));
    if (!head_->settled.compare_exchange_weak(settled, next))
      continue;
    if (how == outcome::by_messages)
      wake_waiters(); // an arrival has woken them before
    return how;
  }
  return met_in(settled) == number ? outcome::met : outcome::by_messages;
}

std::atomic<uint32_t>& shared_mailbox::changes() const {
  return head_->changes;
}

uint32_t shared_mailbox::begin_to_wait() {
  head_->waiters.fetch_add(1);
  return head_->changes.load();
}

void shared_mailbox::end_to_wait() {
  head_->waiters.fetch_sub(1);
}

void shared_mailbox::wake_waiters() {
  if (head_->waiters.load() == 0)
    return;
  head_->changes.fetch_add(1);
  ::syscall(SYS_futex, &head_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

namespace {

void reduce(const reducer& combine, std::span<const std::byte* const> inputs, uint64_t first_byte, uint64_t count,
            std::byte* out) {
  thread_local std::vector<const std::byte*> sources;
  sources.clear();
  for (auto input : inputs)
    sources.push_back(input + first_byte);
  combine.many(sources, out, count, true, static_cast<uint32_t>(inputs.size()));
}

void copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, bytes);
}

} // namespace

bool has_one_output(proto::CollectiveKind kind) {
  return kind != proto::SEND_RECV; // a pair of ranks does not need the others
}

void output_of(proto::CollectiveKind kind, const plan_request& request, const reducer* combine, uint64_t element_bytes,
               std::span<const std::byte* const> inputs, std::byte* out) {
  auto block = request.count * element_bytes;
  auto own = request.rank * block;
  const bool is_root = request.rank == request.root;
  ensure(inputs.size() == request.world_size && request.rank < inputs.size(), "every rank has its input");
  ensure(combine != nullptr || !reduces(kind), "a reduction has its operation");
  auto from_all = [&](uint64_t at) {
    for (size_t rank = 0; rank < inputs.size(); ++rank)
      copy(out + rank * block, inputs[rank] + at, block);
  };
  switch (kind) {
    case proto::ALL_REDUCE: return reduce(*combine, inputs, 0, request.count, out);
    case proto::REDUCE:
      if (is_root)
        reduce(*combine, inputs, 0, request.count, out);
      return;
    case proto::REDUCE_SCATTER: return reduce(*combine, inputs, own, request.count, out);
    case proto::BROADCAST: return copy(out, inputs[request.root], block);
    case proto::SCATTER: return copy(out, inputs[request.root] + own, block);
    case proto::ALL_GATHER: return from_all(0);
    case proto::GATHER:
      if (is_root)
        from_all(0);
      return;
    case proto::ALL_TO_ALL: return from_all(own);
    default: return; // a barrier moves no data
  }
}

} // namespace ringmaster
