#include "actors/training/part_gatherings.hpp"

#include "messages/errc.hpp"
#include "runtime/memory/mapped_memory.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

void part_gatherings::gather(uint64_t step, found_parts there, const std::vector<source>& from,
                             caf::actor_clock::time_point due, done_function then) {
  const auto number = ++made_;
  auto& its = all_[number];
  its = {.step = step, .due = due, .then = std::move(then), .found = std::move(there)};
  for (auto& each : from)
    its.awaited[each.what] = each.device;
  // No limit here: CAF's clock keeps a request's until it is over, of every part of every step.
  for (auto& each : from)
    self_->request(each.rank, caf::infinite, part_request{step, each.what})
      .then([this, number, what = each.what](const byte_block& x) { came(number, what, x); },
            [this, number, what = each.what](const caf::error&) { did_not_come(number, what, "no longer answers"); });
  if (from.empty())
    end(number);
}

void part_gatherings::came(uint64_t number, const kept_part& what, const byte_block& x) {
  const auto its = all_.find(number);
  if (its == all_.end())
    return; // too late
  if (x.size() == 0)
    return did_not_come(number, what, "has not kept what it made");
  its->second.found[what] = x;
  its->second.awaited.erase(what);
  if (its->second.awaited.empty())
    end(number);
}

void part_gatherings::did_not_come(uint64_t number, const kept_part& what, std::string_view why) {
  const auto its = all_.find(number);
  if (its == all_.end())
    return;
  auto& all = its->second;
  const auto device = all.awaited.extract(what).mapped();
  all.problem = make_error(errc::device_lost,
                           fmt::format("{} {}, and had a part of layer {}", text_of(device), why, what.layer));
  has_nothing_(device, all.step);
  if (all.awaited.empty())
    end(number);
}

void part_gatherings::end(uint64_t number) {
  auto its = std::move(all_.extract(number).mapped());
  its.then(its.problem ? caf::expected<found_parts>{std::move(its.problem)}
                       : caf::expected<found_parts>{std::move(its.found)});
}

void part_gatherings::expire() {
  const auto now = self_->clock().now();
  for (auto next = all_.begin(); next != all_.end();) {
    const auto number = next->first;
    const auto late = next->second.due <= now ? next->second.awaited : std::map<kept_part, device_id>{};
    for (auto& [what, device] : late) // the last one ends it
      did_not_come(number, what, "no longer answers");
    next = all_.upper_bound(number);
  }
}

void part_gatherings::excuse(caf::timespan late) {
  for (auto& [number, each] : all_)
    each.due += late;
}

} // namespace ringmaster::training
