#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace ringmaster {

/// Clients' calls that a device or a communicator (`Receiver`: its id) has not answered: how to answer for one that
/// ends first. Each is answered once, by the receiver, by its limit or here. The coordinator's.
template <class Receiver>
class pending_calls {
public:
  using number = uint64_t;

  /// `fail` tells the client why there is no answer.
  number begun(Receiver who, std::function<void(const caf::error&)> fail) {
    calls_.emplace(++last_, call{who, std::move(fail)});
    return last_;
  }

  /// The receiver has answered, or the call's limit has passed. Returns whether the client still waits.
  bool ended(number x) { return calls_.erase(x) > 0; }

  /// Nobody will answer any more: fails all that wait for it.
  void gone(Receiver who, const caf::error& why) {
    std::vector<call> failed; // whoever is told may call again
    for (auto i = calls_.begin(); i != calls_.end();)
      if (i->second.receiver == who) {
        failed.push_back(std::move(i->second));
        i = calls_.erase(i);
      } else {
        ++i;
      }
    for (auto& x : failed)
      x.fail(why);
  }

  size_t size() const { return calls_.size(); }

private:
  struct call {
    Receiver receiver;
    std::function<void(const caf::error&)> fail;
  };

  std::map<number, call> calls_;
  number last_ = 0;
};

} // namespace ringmaster
