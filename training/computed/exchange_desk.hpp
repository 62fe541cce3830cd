#pragma once

#include "training/language/executor.hpp"

#include <caf/expected.hpp>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::training {

/// A rank has come to a communication, and shows what it has.
struct arrival {
  pending about;       ///< Without memory: what, aside, rank, peer, among, argument.
  uint64_t number = 0; ///< The rank's own, by which it is told of the end.
  uint64_t count = 0;  ///< Elements, as rank_computation::transfer has them.
  uint64_t input = 0;  ///< Addresses on the rank's device; 0: it has none.
  uint64_t output = 0; ///< 0: it has none, or cannot know yet how long it will be.
};

/// What others are shown of a communication; `asked`: in which form it wants its result, where that is not said by
/// what it has.
pending shown(op what, bool aside, uint32_t rank, uint32_t peer, group among, value_tag argument, form asked);

/// Where the ranks of a step meet: sends with receives, and the ranks of a group with each other. Pure: it says what
/// can take place, and moves nothing.
class exchange_desk {
public:
  /// All that a communication needs: a collective's ranks in the group's order; the sender, then the receiver. Their
  /// results' tags are set.
  using exchange = std::vector<arrival>;

  /// What can take place now. Errors: invalid_argument, for ranks that call different collectives, or have
  /// different numbers of elements, and for what they may not add up or gather; `collective_rules` says which.
  caf::expected<std::optional<exchange>> arrive(arrival x);

  /// "rank 0 waits for ranks 1, 2 to call all_reduce of the ..."; none: no rank waits for another.
  std::optional<std::string> waiting() const;
  /// Whether ranks wait for what never comes; `ended` says whether a rank has ended. What is aside blocks no rank.
  /// Errors: invalid_argument, "rank 0 waits for rank 1 to ..., rank 1 waits for rank 0 to ...: none of them can go
  /// on", or "rank 0 waits for rank 1 to ..., which has ended".
  caf::error stuck(const std::function<bool(uint32_t)>& ended) const;
  /// Whether something was sent and not received. Errors: invalid_argument, with the ranks and the value.
  caf::error left_behind() const;

private:
  /// What one rank's stream sends another's, of a kind.
  using passage = std::tuple<uint32_t, uint32_t, value_kind, bool>;
  struct line {
    std::deque<arrival> sent, wanted;
  };
  using place = std::tuple<uint32_t, uint32_t, uint32_t, bool>;

  /// A rank waits for another one: to send it something of the kind, or to meet it and others.
  struct wait {
    uint32_t rank = 0, other = 0;
    bool aside = false;
    value_kind kind{};
    const pending* meets = nullptr; ///< Null: it receives.
    const std::vector<std::deque<arrival>>* all = nullptr;
  };
  static std::string told(const wait& x);
  std::vector<wait> waits() const;

  caf::expected<std::optional<exchange>> pass(arrival x);
  caf::expected<std::optional<exchange>> meet(arrival x);

  std::map<passage, line> lines_;
  /// By group and stream, by index: each rank's collectives there that others have not all come to. A rank may be
  /// ahead by several on its second stream.
  std::map<place, std::vector<std::deque<arrival>>> meetings_;
};

} // namespace ringmaster::training
