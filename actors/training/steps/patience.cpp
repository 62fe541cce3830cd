#include "actors/training/steps/patience.hpp"

#include "messages/errc.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace ringmaster::training {

caf::timespan patience::tick(time_point now) {
  ensure(now >= ticked_, "time never runs backwards");
  const auto late = now - std::exchange(ticked_, now) - tick_interval;
  if (late < tick_interval)
    return caf::timespan{0};
  news_ += late;
  return late;
}

void patience::heard(time_point now) {
  news_ = now;
}

void patience::heard_of(uint32_t rank, time_point now) {
  ensure(rank < heard_.size(), "a rank that was heard runs the step");
  ensure(now >= heard_[rank], "time never runs backwards");
  heard_[rank] = news_ = now;
}

void patience::step_started(uint32_t ranks, time_point now) {
  ensure(ranks > 0, "a step has ranks");
  heard_.assign(ranks, now);
  news_ = now;
}

caf::error patience::stalled(uint64_t step, std::span<const rank_roster::member> world,
                             const std::optional<std::string>& waiting) {
  std::vector<device_id> ranks;
  for (auto& each : world)
    ranks.push_back(each.device);
  const auto why = fmt::format("nothing has happened for {}, which training.patience allows{}", duration_text(limit_),
                               waiting ? ": " + *waiting : "");
  stalls_ = ranks == stalled_ranks_ ? stalls_ + 1 : 1;
  stalled_ranks_ = std::move(ranks);
  if (stalls_ == stalls_max)
    return make_error(errc::gave_up,
                      fmt::format("step {} has stalled {} times with the same ranks: {}", step, stalls_max, why));
  return make_error(errc::timed_out, why);
}

bool patience::warns(time_point now) {
  if (std::exchange(warned_since_, news_) != news_)
    next_warning_ = quiet_max;
  if (silent(now) < next_warning_)
    return false;
  next_warning_ = 2 * next_warning_ + (repeat_interval - quiet_max);
  return true;
}

std::optional<std::string> patience::warning(uint64_t step, const std::string& awaited, bool recovers, time_point now) {
  if (!warns(now))
    return std::nullopt;
  const bool coordinator_is_silent = asked_at_ && now - *asked_at_ >= answer_time;
  return fmt::format("step {} has been stalled for {}: {}; {} after {}", step,
                     duration_text(std::chrono::floor<std::chrono::seconds>(silent(now))),
                     coordinator_is_silent ? "the coordinator does not answer" : awaited,
                     recovers ? "a late rank is left out if its device is lost, or"
                              : "the step is given up if a rank is lost, or",
                     duration_text(limit_));
}

void patience::asked(size_t devices, time_point now) {
  ensure(may_ask(), "the coordinator is asked when it has answered the last time");
  ensure(devices > 0, "the coordinator is asked about devices");
  asked_at_ = now;
  answers_awaited_ = devices;
}

void patience::answered() {
  ensure(answers_awaited_ > 0 && asked_at_, "only awaited answers are counted");
  if (--answers_awaited_ == 0)
    asked_at_.reset();
}

std::optional<std::string> patience::unfinished(std::span<const rank_roster::member> world,
                                                const std::vector<bool>& is_unfinished, time_point now) const {
  constexpr size_t named_max = 4;
  ensure(world.size() <= heard_.size() && world.size() == is_unfinished.size(), "every rank of the step is known");
  std::vector<size_t> all;
  for (size_t i = 0; i < world.size(); ++i)
    if (is_unfinished[i])
      all.push_back(i);
  if (all.empty())
    return std::nullopt;
  std::ranges::sort(all, {}, [&](auto i) { return heard_[i]; }); // the longest silence first
  std::vector<std::string> parts;
  for (auto i : std::span{all}.first(std::min(named_max, all.size()))) {
    const auto silence = std::chrono::floor<std::chrono::milliseconds>(now - heard_[i]);
    parts.push_back(fmt::format("rank {} ({}), last heard {} ago", i, ringmaster::text_of(world[i].device),
                                duration_text(silence)));
  }
  return fmt::format("{} {} not finished it: {}{}", counted(all.size(), "rank"), all.size() == 1 ? "has" : "have",
                     fmt::join(parts, ", "), all.size() > named_max ? ", ..." : "");
}

} // namespace ringmaster::training
