#include "actors/training/part_gatherings.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/mapped_memory.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

void part_gatherings::gather(uint64_t step, found_parts available, const std::vector<source>& from,
                             caf::actor_clock::time_point due, done_function then) {
  const auto number = ++made_;
  auto& its = all_[number];
  its = {.step = step, .due = due, .then = std::move(then), .found = std::move(available)};
  for (auto& each : from)
    ensure(its.awaited.emplace(each.what, each.device).second, "each part is asked of one rank");
  // No limit here: CAF's clock would keep one for each part of each step until the limit is over.
  for (auto& each : from)
    self_->request(each.rank, caf::infinite, part_request{step, each.what})
      .then([this, number, what = each.what](const byte_block& x) { arrived(number, what, x); },
            [this, number, what = each.what](const caf::error&) { failed(number, what, "no longer answers"); });
  if (from.empty())
    finish(number);
}

void part_gatherings::arrived(uint64_t number, const kept_part& what, const byte_block& x) {
  const auto its = all_.find(number);
  if (its == all_.end())
    return; // it has failed already
  if (x.size() == 0)
    return failed(number, what, "no longer has what it made");
  ensure(its->second.awaited.contains(what), "a part that arrives is awaited");
  its->second.found[what] = x;
  its->second.awaited.erase(what);
  if (its->second.awaited.empty())
    finish(number);
}

void part_gatherings::failed(uint64_t number, const kept_part& what, std::string_view why) {
  const auto its = all_.find(number);
  if (its == all_.end())
    return;
  auto& all = its->second;
  ensure(all.awaited.contains(what), "a part that fails is awaited");
  const auto device = all.awaited.extract(what).mapped();
  all.problem = make_error(errc::device_lost,
                           fmt::format("{} {}, and had a part of layer {}", text_of(device), why, what.layer));
  has_nothing_(device, all.step);
  if (all.awaited.empty())
    finish(number);
}

void part_gatherings::finish(uint64_t number) {
  ensure(all_.contains(number), "a collection finishes once");
  auto its = std::move(all_.extract(number).mapped());
  ensure(its.awaited.empty(), "a collection finishes when nothing is awaited");
  its.then(its.problem ? caf::expected<found_parts>{std::move(its.problem)}
                       : caf::expected<found_parts>{std::move(its.found)});
}

void part_gatherings::expire() {
  const auto now = self_->clock().now();
  for (auto next = all_.begin(); next != all_.end();) {
    const auto number = next->first;
    const auto late = next->second.due <= now ? next->second.awaited : std::map<kept_part, device_id>{};
    for (auto& [what, device] : late) // the last one finishes it
      failed(number, what, "no longer answers");
    next = all_.upper_bound(number);
  }
}

void part_gatherings::excuse(caf::timespan late) {
  for (auto& [number, each] : all_)
    each.due += late;
}

} // namespace ringmaster::training
