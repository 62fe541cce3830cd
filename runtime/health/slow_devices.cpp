#include "runtime/health/slow_devices.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace ringmaster {

namespace {

double ratio(double of, double to) {
  return of <= 0 ? 0 : std::min(of / std::max(to, of / slow_devices::factor_max), slow_devices::factor_max);
}

/// Ascending, without zeros.
std::vector<double> sorted(std::vector<double> values) {
  std::erase(values, 0.0);
  std::ranges::sort(values);
  return values;
}

/// The lower median of the values but one, `own`. There are others.
double median_without(const std::vector<double>& ascending, double own) {
  const auto place = std::ranges::lower_bound(ascending, own) - ascending.begin();
  const auto middle = (ascending.size() - 2) / 2;
  return ascending[static_cast<size_t>(place) <= middle ? middle + 1 : middle];
}

/// How `own` compares with the median of the others. None: one of them has done nothing.
std::optional<double> factor_of(double own, const std::vector<double>& ascending) {
  if (own <= 0 || ascending.size() < 2)
    return std::nullopt;
  return ratio(own, median_without(ascending, own));
}

} // namespace

void slow_devices::heard(device_id device, const proto::DeviceWork& done, time_point now) {
  auto& seen = devices_[device].lately;
  ensure(seen.empty() || now >= seen.back().when, "time does not run backwards");
  const observation next{now, done.own_ns(), done.steps(), done.bytes()};
  if (!seen.empty()
      && (now - seen.back().when > gap_max || next.own_ns < seen.back().own_ns || next.steps < seen.back().steps
          || next.bytes < seen.back().bytes))
    seen.clear();
  seen.push_back(next);
  while (seen.size() > 1 && now - seen[1].when >= window)
    seen.pop_front();
  ensure(seen.size() == 1 || now - seen[1].when < window, "one observation is kept from before the window");
}

std::vector<slow_devices::change> slow_devices::look(const std::vector<device_id>& devices, time_point now) {
  std::vector<work> all;
  for (auto device : devices) {
    const auto known = devices_.find(device);
    if (known == devices_.end() || known->second.lately.empty())
      continue;
    const auto &first = known->second.lately.front(), &last = known->second.lately.back();
    if (last.when - first.when < window || now - last.when > gap_max)
      continue;
    const auto own = static_cast<double>(last.own_ns - first.own_ns) * (duration{window} / duration{1})
                     / static_cast<double>((last.when - first.when).count());
    const auto steps = static_cast<double>(last.steps - first.steps);
    const auto bytes = static_cast<double>(last.bytes - first.bytes);
    all.push_back({device, own, steps > 0 ? own / steps : 0, bytes > 0 ? own / bytes : 0});
  }
  std::vector<change> result;
  if (all.size() < 2)
    return result; // there is nothing to compare with
  std::vector<double> own(all.size()), per_step(all.size()), per_byte(all.size());
  std::ranges::transform(all, own.begin(), &work::own_ns);
  std::ranges::transform(all, per_step.begin(), &work::per_step);
  std::ranges::transform(all, per_byte.begin(), &work::per_byte);
  std::ranges::sort(own); // with those that had nothing to do
  per_step = sorted(std::move(per_step));
  per_byte = sorted(std::move(per_byte));
  for (auto& x : all) {
    const auto others_ns = median_without(own, x.own_ns);
    auto factor = ratio(x.own_ns, others_ns);
    factor = std::min(factor, factor_of(x.per_step, per_step).value_or(factor));
    factor = std::min(factor, factor_of(x.per_byte, per_byte).value_or(factor));
    auto& known = devices_.at(x.device);
    const auto share = x.own_ns / static_cast<double>(duration{window}.count());
    const bool is_slow = known.is_slow ? factor >= slow_below && share >= share_min / 2
                                       : factor >= slow_from && share >= share_min;
    known.how.set_factor(factor);
    known.how.set_own_ns(static_cast<uint64_t>(x.own_ns));
    known.how.set_others_ns(static_cast<uint64_t>(others_ns));
    known.how.set_over_ns(static_cast<uint64_t>(duration{window}.count()));
    if (std::exchange(known.is_slow, is_slow) != is_slow)
      result.push_back({x.device, is_slow, known.how});
  }
  return result;
}

const proto::Slowness* slow_devices::slowness(device_id device) const {
  const auto known = devices_.find(device);
  return known == devices_.end() || !known->second.is_slow ? nullptr : &known->second.how;
}

std::string text_of(const proto::Slowness& x) {
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  const auto times = x.factor() >= slow_devices::factor_max ? fmt::format("over {:.0f}", slow_devices::factor_max - 1)
                     : x.factor() < 10                      ? fmt::format("{:.1f}", x.factor())
                                                            : fmt::format("{:.0f}", x.factor());
  return fmt::format(
    "{} times slower than the others: it owed the next move for {:.1f} s of {:.1f} s, they for {:.2f} s "
    "in the median",
    times, seconds(x.own_ns()), seconds(x.over_ns()), seconds(x.others_ns()));
}

} // namespace ringmaster
