#include "tools/journal/log_samples.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/data/sampler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster {

namespace {

/// The samples of a run by epoch.
class sample_list {
public:
  explicit sample_list(bool json) : json_(json) {}

  caf::error add(const proto::TrainingStep& x) {
    if (x.run() != run_ || x.epoch() != epoch_)
      end_epoch();
    if (x.run() != run_) {
      training::sampler_options order;
      order.samples = static_cast<uint32_t>(x.data_samples());
      order.global_batch = static_cast<uint32_t>(x.samples());
      order.seed = x.seed();
      auto made = training::sampler::of(order);
      if (!made || x.samples() == 0)
        return malformed(fmt::format("the record of step {} of training {} says {} of {} samples", x.step(),
                                     training_name(x.run()), x.samples(), x.data_samples()));
      order_ = std::move(*made);
      run_ = x.run();
    }
    ensure(order_.has_value(), "a run has an order of its samples");
    epoch_ = x.epoch();
    all_ = x.data_samples();
    auto batch = order_->batch({x.epoch(), x.first_sample() / x.samples()});
    for (auto each : batch)
      twice_ += seen_.insert(each).second ? 0 : 1;
    ++steps_;
    if (json_)
      put_json(x, batch);
    else
      text_ += fmt::format("training {}, epoch {}, step {} over {}: {}\n", training_name(x.run()), x.epoch(), x.step(),
                           counted(static_cast<uint64_t>(x.device_ids_size()), "rank"), fmt::join(batch, " "));
    return caf::none;
  }

  std::string take() {
    end_epoch();
    return std::move(text_);
  }

private:
  void put_json(const proto::TrainingStep& x, std::span<const uint32_t> batch) {
    // The run is a string, as in `ringmaster log --json`: readers round such large numbers.
    text_ += json_text(
      {{"run", std::to_string(x.run())}, {"epoch", x.epoch()}, {"step", x.step()}, {"samples", batch}});
    text_ += '\n';
  }
  void end_epoch() {
    if (steps_ > 0 && !json_)
      text_ += fmt::format("training {}, epoch {}: {} of {} in {}, {}\n", training_name(run_.value_or(0)), epoch_,
                           seen_.size(), counted(all_, "sample"), counted(steps_, "step"),
                           twice_ == 0 ? "each once" : fmt::format("{} of them twice", twice_));
    seen_.clear();
    steps_ = twice_ = 0;
  }

  bool json_;
  std::optional<uint64_t> run_;
  uint64_t epoch_ = 0, steps_ = 0, twice_ = 0, all_ = 0;
  std::optional<training::sampler> order_;
  std::set<uint32_t> seen_;
  std::string text_;
};

/// A training over several runs: its valid steps by number.
using training_steps = std::map<uint64_t, proto::TrainingStep>;

bool are_alike(const proto::TrainingStep& a, const proto::TrainingStep& b) {
  return a.seed() == b.seed() && a.samples() == b.samples() && a.data_samples() == b.data_samples();
}

/// The training that a run continues if its first record does not name one: the latest similar one that has the
/// previous step.
std::vector<training_steps>::iterator continued_by(const proto::TrainingStep& x, std::vector<training_steps>& all) {
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](auto& each) {
    const auto before = x.step() == 0 ? each.end() : each.find(x.step() - 1);
    return before != each.end() && are_alike(before->second, x);
  });
  return found == all.rend() ? all.end() : std::prev(found.base());
}

} // namespace

caf::expected<std::string> samples_text(const std::vector<proto::Record>& records, bool json) {
  std::vector<training_steps> all;
  std::map<uint64_t, size_t> where; ///< By the training's first run, or by the run if its records do not name that.
  for (auto& each : records) {
    if (!each.has_training_step())
      continue;
    auto x = each.training_step();
    const auto key = x.training() != 0 ? x.training() : x.run();
    if (!where.contains(key)) {
      const auto to = x.training() != 0 ? all.end() : continued_by(x, all);
      where[key] = static_cast<size_t>(to - all.begin());
      if (to == all.end())
        all.emplace_back();
    }
    auto& its = all[where[key]];
    its.erase(its.lower_bound(x.step()), its.end()); // they were repeated from here
    if (!its.empty())
      x.set_run(its.begin()->second.run());
    its.emplace(x.step(), std::move(x));
  }
  sample_list result{json};
  for (auto& each : all)
    for (auto& [step, record] : each)
      RETURN_ERROR(result.add(record));
  return result.take();
}

} // namespace ringmaster
