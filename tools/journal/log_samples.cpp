#include "tools/journal/log_samples.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json/json_writer.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/data/sampler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <set>

namespace ringmaster {

namespace {

/// A run's samples, epoch after epoch.
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
        return malformed(fmt::format("the record of step {} of training {} says {} of {} samples", x.step(), x.run(),
                                     x.samples(), x.data_samples()));
      order_ = std::move(*made);
      run_ = x.run();
    }
    epoch_ = x.epoch();
    all_ = x.data_samples();
    auto batch = order_->batch({x.epoch(), x.first_sample() / x.samples()});
    for (auto each : batch)
      twice_ += seen_.insert(each).second ? 0 : 1;
    ++steps_;
    if (json_)
      put_json(x, batch);
    else
      text_ += fmt::format("training {}, epoch {}, step {} over {}: {}\n", x.run(), x.epoch(), x.step(),
                           counted(static_cast<uint64_t>(x.device_ids_size()), "rank"), fmt::join(batch, " "));
    return caf::none;
  }

  std::string take() {
    end_epoch();
    return std::move(text_);
  }

private:
  void put_json(const proto::TrainingStep& x, std::span<const uint32_t> batch) {
    json_writer json;
    json.object().member("run", x.run()).member("epoch", x.epoch()).member("step", x.step());
    json.list("samples");
    for (auto each : batch)
      json.value(each);
    text_ += json.end().end().take() + "\n";
  }
  void end_epoch() {
    if (steps_ > 0 && !json_)
      text_ += fmt::format("training {}, epoch {}: {} of {} in {}, {}\n", run_.value_or(0), epoch_, seen_.size(),
                           counted(all_, "sample"), counted(steps_, "step"),
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

} // namespace

caf::expected<std::string> samples_text(const std::vector<proto::Record>& records, bool json) {
  std::vector<uint64_t> runs; // in their order
  std::map<uint64_t, std::map<uint64_t, const proto::TrainingStep*>> latest;
  for (auto& each : records)
    if (each.has_training_step()) {
      auto& x = each.training_step();
      if (latest.find(x.run()) == latest.end())
        runs.push_back(x.run());
      latest[x.run()][x.step()] = &x;
    }
  sample_list all{json};
  for (auto run : runs)
    for (auto& [step, record] : latest[run])
      if (auto problem = all.add(*record))
        return problem;
  return all.take();
}

} // namespace ringmaster
