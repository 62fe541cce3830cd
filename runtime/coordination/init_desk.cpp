#include "runtime/coordination/init_desk.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <utility>

namespace ringmaster {

void init_desk::begin(number who) {
  const bool is_new = calls_.try_emplace(who).second;
  ensure(is_new, "each CommInit call has a number of its own");
}

init_desk::step init_desk::next(number who, const caf::expected<device_ids>& ranks) {
  ensure(has(who), "a CommInit call that is decided is known");
  auto& x = calls_.at(who);
  ensure(x.now != phase::asking && x.asked == 0, "a CommInit call is decided when all devices have answered");
  if (!x.problem && !ranks && !x.silent.empty() && !x.expired && code_of(ranks.error()) == errc::too_few_devices) {
    x.now = phase::waiting; // supervisors start other devices
    return wait{.starts_timer = !std::exchange(x.has_timer, true)};
  }
  if (x.problem || !ranks) {
    const auto& problem = x.problem ? x.problem : ranks.error();
    refuse result{make_error(code_of(problem), render(problem) + x.silent)};
    calls_.erase(who);
    return result;
  }
  device_ids unheard;
  for (auto id : *ranks)
    if (!x.living.contains(id))
      unheard.push_back(id);
  if (unheard.empty()) {
    calls_.erase(who);
    return make{*ranks};
  }
  x.now = phase::asking;
  x.asked = unheard.size();
  return ask{std::move(unheard)};
}

init_desk::call& init_desk::asking(number who) {
  const auto found = calls_.find(who);
  ensure(found != calls_.end(), "a CommInit call stays while its devices are asked");
  ensure(found->second.now == phase::asking, "a device answers a CommInit call that asks");
  return found->second;
}

bool init_desk::settled(call& x) {
  ensure(x.asked > 0, "each device that is asked answers once");
  if (--x.asked > 0)
    return false;
  x.now = phase::choosing;
  return true;
}

bool init_desk::heard(number who, device_id from) {
  auto& x = asking(who);
  x.living.insert(from);
  return settled(x);
}

bool init_desk::lost(number who) {
  return settled(asking(who));
}

bool init_desk::given_up(number who, const std::string& why) {
  auto& x = asking(who);
  x.silent += "; " + why;
  return settled(x);
}

bool init_desk::not_asked(number who, const caf::error& problem) {
  ensure(static_cast<bool>(problem), "a device that could not be asked has an error");
  auto& x = asking(who);
  x.problem = problem;
  return settled(x);
}

bool init_desk::expired(number who) {
  const auto found = calls_.find(who);
  ensure(found != calls_.end(), "the limit passes of a CommInit call that is known");
  found->second.expired = true;
  return found->second.now != phase::asking;
}

std::vector<init_desk::number> init_desk::waiting() const {
  std::vector<number> result;
  for (auto& [who, x] : calls_)
    if (x.now == phase::waiting)
      result.push_back(who);
  return result;
}

} // namespace ringmaster
