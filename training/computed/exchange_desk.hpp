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

/// A rank has arrived at a communication, with a description of what it has.
struct arrival {
  pending about;       ///< Without memory: what, aside, rank, peer, among, argument.
  uint64_t number = 0; ///< The rank's own number, for the answer.
  uint64_t count = 0;  ///< Elements, as rank_computation::transfer has them.
  uint64_t input = 0;  ///< Address on the rank's device; 0: it has none.
  uint64_t output = 0; ///< 0: it has none, or does not know its size yet.
};

/// The description of a communication for other ranks. `asked`: the form of the result that the rank wants, if that
/// does not follow from what it has.
pending shown(op what, bool aside, uint32_t rank, uint32_t peer, group among, value_tag argument, form asked);

/// Matches the communications of the ranks of a step: sends with receives, and the calls of a collective. Pure: it says
/// which communications can start, and moves no data.
class exchange_desk {
public:
  /// A communication that is complete: a collective's ranks in the group's order, or the sender, then the receiver. The
  /// tags of their results are set.
  using exchange = std::vector<arrival>;

  /// Returns the communication that can start now, if any. Errors: invalid_argument, for ranks that call different
  /// collectives or have different numbers of elements, and for values that `collective_rules` refuse.
  caf::expected<std::optional<exchange>> arrive(arrival x);

  /// "rank 0 waits for ranks 1, 2 to call all_reduce of the ..."; none: no rank waits for another.
  std::optional<std::string> waiting() const;
  /// Whether ranks wait for something that never comes. `ended` says whether a rank has finished. A communication that
  /// is aside blocks no rank. Errors: invalid_argument, "rank 0 waits for rank 1 to ..., rank 1 waits for rank 0 to
  /// ...: none of them can go on", or "rank 0 waits for rank 1 to ..., which has ended".
  caf::error stuck(const std::function<bool(uint32_t)>& ended) const;
  /// Whether a value was sent and not received. Errors: invalid_argument, with the ranks and the value.
  caf::error left_behind() const;

private:
  /// From one rank's stream to another's: values of one kind.
  using passage = std::tuple<uint32_t, uint32_t, value_kind, bool>;
  struct line {
    std::deque<arrival> sent, wanted;
  };
  using place = std::tuple<uint32_t, uint32_t, uint32_t, bool>;

  /// A rank waits for another rank, which is to send it a value of this kind, or to call the same collective.
  struct wait {
    uint32_t rank = 0, other = 0;
    bool aside = false;
    value_kind kind{};
    const pending* meets = nullptr; ///< The collective; null: it receives.
    const std::vector<std::deque<arrival>>* all = nullptr;
  };
  static std::string description(const wait& x);
  std::vector<wait> waits() const;

  caf::expected<std::optional<exchange>> pass(arrival x);
  caf::expected<std::optional<exchange>> meet(arrival x);

  std::map<passage, line> lines_;
  /// By group and stream, then by index in the group: each rank's collectives that some other rank has not called yet.
  /// A rank may be ahead by several on its second stream.
  std::map<place, std::vector<std::deque<arrival>>> meetings_;
};

} // namespace ringmaster::training
