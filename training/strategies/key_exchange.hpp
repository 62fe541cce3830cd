#pragma once

#include "training/language/rank.hpp"

namespace ringmaster::training {

/// A copy of a value on its way to the next rank of a ring, and another one's from the previous, beside what is
/// computed meanwhile.
template <class Value>
class ring_hop {
public:
  ring_hop(rank& self, group ring) : self_(self), ring_(ring) {}

  void begin(const Value& x) {
    const auto mine = ring_.index_of(self_.index());
    sent_ = self_.aside(self_.send(ring_.rank((mine + 1) % ring_.count), x));
    comes_ = self_.aside(self_.receive<Value>(ring_.rank((mine + ring_.count - 1) % ring_.count)));
  }
  /// Where it has begun: x is what came.
  strategy end(Value& x) {
    if (!comes_.valid())
      co_return;
    co_await std::move(sent_);
    x = co_await std::move(comes_);
  }

private:
  rank& self_;
  group ring_;
  handle<> sent_;
  handle<Value> comes_;
};

/// What the attention of a rank's positions needs of the others that share them, and gives them: keys go around in a
/// ring, or each rank gathers all of them.
class key_exchange {
public:
  key_exchange(rank& self, group sharers, bool rings) : self_(self), sharers_(sharers), rings_(rings) {}

  /// Of x's positions to all.
  task<attention> attend(const activation& x, const attention_keys& own) {
    if (rings_)
      co_return co_await attend_around(x, own);
    auto all = co_await self_.all_gather(own, sharers_);
    co_return co_await self_.attend(x, all);
  }
  /// By the rank's own keys, from all positions.
  task<keys_gradient> attend_backward(const activation& x, const attention_keys& own,
                                      const activation_gradient& by_output) {
    if (rings_)
      co_return co_await attend_backward_around(x, own, by_output);
    auto all = co_await self_.all_gather(own, sharers_);
    auto by_all = co_await self_.attend_backward(x, all, by_output);
    all.drop();
    co_return co_await self_.reduce_scatter(std::move(by_all), sharers_);
  }

private:
  task<attention> attend_around(const activation& x, const attention_keys& own) {
    attention made;
    attention_keys came;
    ring_hop<attention_keys> keys{self_, sharers_};
    for (uint32_t i = 0; i < sharers_.count; ++i) {
      const auto& at_hand = i == 0 ? own : came;
      if (i + 1 < sharers_.count)
        keys.begin(at_hand);
      auto more = co_await self_.attend(x, at_hand);
      co_await self_.add(made, std::move(more));
      co_await keys.end(came);
    }
    co_return std::move(made);
  }

  /// A gradient sets out with the keys that it is by, and is a hop later: each rank adds its own to what came.
  task<keys_gradient> attend_backward_around(const activation& x, const attention_keys& own,
                                             const activation_gradient& by_output) {
    keys_gradient sum;
    attention_keys came;
    ring_hop<attention_keys> keys{self_, sharers_};
    ring_hop<keys_gradient> sums{self_, sharers_};
    for (uint32_t i = 0; i < sharers_.count; ++i) {
      const auto& at_hand = i == 0 ? own : came;
      if (i + 1 < sharers_.count)
        keys.begin(at_hand);
      auto more = co_await self_.attend_backward(x, at_hand, by_output);
      co_await sums.end(sum);
      co_await self_.add(sum, std::move(more));
      if (sharers_.count > 1)
        sums.begin(sum);
      co_await keys.end(came);
    }
    co_await sums.end(sum); // at home
    co_return std::move(sum);
  }

  rank& self_;
  group sharers_;
  bool rings_;
};

} // namespace ringmaster::training
