#include "runtime/simulation/message_graph.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/schedule_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ringmaster {

namespace {

constexpr uint64_t steps_max = uint64_t{1} << 30;
constexpr uint32_t rounds_max = 1u << 28;

/// The elements that a step sends, receives or computes. The first lane of a fold is only read.
uint64_t elements_of(const step& x) {
  return x.what == action::send   ? x.source.count
         : x.what == action::fold ? x.source.count - x.destination.count
                                  : x.destination.count;
}

/// One end of a channel.
struct channel_end {
  uint64_t key = 0; ///< Source and destination.
  uint32_t messages = 0;
  uint32_t channel = 0;
  uint32_t next = 0; ///< The activity of the next message.
};

/// Finds the channel end for a peer of the current rank. A table over all ranks; entries of earlier ranks count as
/// empty.
class ends_by_peer {
public:
  explicit ends_by_peer(uint32_t world_size) : entries_(world_size) {}

  uint32_t find_or_add(std::vector<channel_end>& ends, uint32_t rank, uint32_t peer, uint64_t key) {
    auto& entry = entries_[peer];
    if (entry.rank != rank) {
      entry = {rank, static_cast<uint32_t>(ends.size())};
      ends.push_back({.key = key});
    }
    return entry.index;
  }

private:
  struct entry_type {
    uint32_t rank = UINT32_MAX;
    uint32_t index = 0;
  };
  std::vector<entry_type> entries_;
};

class linker {
public:
  explicit linker(uint32_t world_size) : out_by_peer_(world_size), in_by_peer_(world_size), world_size_(world_size) {
    graph_.first_steps.push_back(0);
  }

  /// Until link(), a step's `activity` is its channel end.
  caf::error add(uint32_t rank, const schedule& x) {
    if (graph_.steps.size() + x.steps.size() > steps_max || x.rounds > rounds_max)
      return invalid("the schedules have more than 2^30 steps or 2^28 rounds, too many to simulate");
    for (const auto& s : x.steps) {
      uint32_t end = 0;
      if (is_local(s)) {
        ++local_count_;
      } else if (s.peer >= world_size_ || s.peer == rank) {
        return invalid(fmt::format("rank {}, round {}: {} is no peer", rank, s.round, s.peer));
      } else if (s.what == action::send) {
        end = out_by_peer_.find_or_add(out_, rank, s.peer, uint64_t{rank} << 32 | s.peer);
        ++out_[end].messages;
      } else {
        end = in_by_peer_.find_or_add(in_, rank, s.peer, uint64_t{s.peer} << 32 | rank);
        ++in_[end].messages;
      }
      graph_.steps.push_back({elements_of(s), end, s.round & (rounds_max - 1), static_cast<uint32_t>(s.what) & 7u,
                              s.then ? 1u : 0u});
    }
    graph_.first_steps.push_back(static_cast<uint32_t>(graph_.steps.size()));
    return caf::none;
  }

  caf::expected<message_graph> link() {
    RETURN_ERROR(join_ends());
    number_activities();
    for (const auto& x : graph_.activities) {
      auto sent = graph_.steps[x.source_step].elements;
      auto expected = graph_.steps[x.destination_step].elements;
      if (sent != expected)
        return invalid(fmt::format("rank {} sends {} elements in round {} and rank {} expects {}",
                                   graph_.channels[x.channel].source, sent, uint32_t{graph_.steps[x.source_step].round},
                                   graph_.channels[x.channel].destination, expected));
    }
    return std::move(graph_);
  }

private:
  static std::vector<uint32_t> sorted(const std::vector<channel_end>& ends) {
    std::vector<uint32_t> order(ends.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return ends[a].key < ends[b].key; });
    return order;
  }

  static caf::error mismatch(uint64_t key, uint32_t sent, uint32_t received) {
    return invalid(fmt::format("rank {} sends {} blocks to rank {}, which receives {} from it", key >> 32, sent,
                               key & UINT32_MAX, received));
  }

  /// Joins each pair of ends to a channel, and numbers its messages.
  caf::error join_ends() {
    auto outs = sorted(out_), ins = sorted(in_);
    for (size_t i = 0; i < std::max(outs.size(), ins.size()); ++i) {
      if (i == ins.size() || (i < outs.size() && out_[outs[i]].key < in_[ins[i]].key))
        return mismatch(out_[outs[i]].key, out_[outs[i]].messages, 0);
      if (i == outs.size() || in_[ins[i]].key < out_[outs[i]].key)
        return mismatch(in_[ins[i]].key, 0, in_[ins[i]].messages);
      auto& out = out_[outs[i]];
      auto& in = in_[ins[i]];
      if (out.messages != in.messages)
        return mismatch(out.key, out.messages, in.messages);
      out.channel = in.channel = static_cast<uint32_t>(i);
      out.next = in.next = message_count_;
      message_count_ += out.messages;
      graph_.channels.push_back({static_cast<uint32_t>(out.key >> 32), static_cast<uint32_t>(out.key)});
    }
    return caf::none;
  }

  void number_activities() {
    ensure(graph_.first_steps.size() == world_size_ + 1 && graph_.first_steps.back() == graph_.steps.size(),
           "each rank was added once, in order");
    graph_.activities.resize(size_t{message_count_} + local_count_);
    auto next_local = message_count_;
    for (uint32_t rank = 0; rank < world_size_; ++rank)
      for (auto i = graph_.first_steps[rank]; i < graph_.first_steps[rank + 1]; ++i) {
        auto& s = graph_.steps[i];
        auto sends = s.what == static_cast<uint32_t>(action::send);
        auto local = is_local(step{.what = static_cast<action>(s.what)});
        auto* end = local ? nullptr : &(sends ? out_ : in_)[s.activity];
        s.activity = local ? next_local++ : end->next++;
        auto& x = graph_.activities[s.activity];
        x.channel = local ? rank : end->channel;
        if (sends || local)
          x.source_step = i;
        if (!sends)
          x.destination_step = i;
      }
    ensure(next_local == graph_.activities.size(), "every step belongs to one activity");
  }

  message_graph graph_;
  std::vector<channel_end> out_, in_;
  ends_by_peer out_by_peer_, in_by_peer_;
  uint32_t world_size_;
  uint32_t message_count_ = 0, local_count_ = 0;
};

} // namespace

caf::expected<message_graph> link_schedules(uint32_t world_size, const schedule_source& source) {
  linker result{world_size};
  for (uint32_t rank = 0; rank < world_size; ++rank) {
    TRY(planned, source(rank));
    RETURN_ERROR(result.add(rank, *planned));
  }
  return result.link();
}

} // namespace ringmaster
