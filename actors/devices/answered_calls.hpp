#pragma once

#include "runtime/operations/call_key.hpp"

#include <caf/error.hpp>
#include <caf/message.hpp>
#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace ringmaster {

/// A device's calls that must run once, with their answers: one that is sent again, since the coordinator was restarted
/// before it had passed the answer on, gets the same.
class answered_calls {
public:
  /// With the type of the request, and so of the answer: a caller may give two requests one number.
  using key = std::pair<call_key, const google::protobuf::Descriptor*>;

  /// The latest that are kept. A client has fewer that were not answered.
  static constexpr size_t calls_max = 2048;
  /// Gets the answer, or an error.
  using receiver = std::function<void(const caf::message& answer, const caf::error& problem)>;

  /// Null: the call is not known, or has not been answered.
  const caf::message* answer_of(const key& call) const {
    const auto known = calls_.find(call);
    return known == calls_.end() || !known->second.answer ? nullptr : &*known->second.answer;
  }
  /// `to` gets the answer when there is one. Returns whether the call is new, and must be carried out.
  bool begin(const key& call, receiver to) {
    auto [known, is_new] = calls_.try_emplace(call);
    if (known->second.answer) {
      to(*known->second.answer, {});
      return false;
    }
    known->second.waiting.push_back(std::move(to));
    return is_new;
  }
  void end(const key& call, caf::message answer) {
    auto& known = calls_[call];
    known.answer = std::move(answer);
    for (auto& each : std::exchange(known.waiting, {}))
      each(*known.answer, {});
    order_.push_back(call);
    if (order_.size() <= calls_max)
      return;
    calls_.erase(order_.front());
    order_.pop_front();
  }
  /// It may be sent again.
  void fail(const key& call, const caf::error& problem) {
    auto known = calls_.extract(call);
    if (known)
      for (auto& each : known.mapped().waiting)
        each({}, problem);
  }

private:
  struct known_call {
    std::optional<caf::message> answer;
    std::vector<receiver> waiting;
  };

  std::map<key, known_call> calls_;
  std::deque<key> order_; ///< Of those that were answered.
};

} // namespace ringmaster
