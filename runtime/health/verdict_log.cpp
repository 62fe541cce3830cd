#include "runtime/health/verdict_log.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <utility>

namespace ringmaster {

void verdict_log::number(proto::Verdict& x) {
  ensure(x.number() == 0 && !x.has_outcome(), "a verdict is numbered once, before anything is done");
  x.set_comm_id(owner_.value);
  x.set_number(++count_);
  std::sort(x.mutable_culprits()->begin(), x.mutable_culprits()->end(),
            [](auto& a, auto& b) { return a.rank() < b.rank(); });
}

const proto::Verdict& verdict_log::open(proto::Verdict found) {
  number(found);
  open_.push_back(std::move(found));
  return open_.back();
}

const proto::Verdict& verdict_log::note(proto::Verdict found) {
  number(found);
  found.mutable_outcome();
  keep(std::move(found));
  return latest_.back();
}

void verdict_log::note_failed(sequence_number operation) {
  for (auto& x : open_)
    x.mutable_outcome()->add_failed(operation.value);
}

void verdict_log::note_spare(device_id spare) {
  for (auto& x : open_)
    x.mutable_outcome()->add_spares(spare.value);
}

void verdict_log::keep(proto::Verdict x) {
  latest_.push_back(std::move(x));
  if (latest_.size() > kept_max)
    latest_.pop_front();
}

std::vector<proto::Verdict> verdict_log::take_open() {
  auto result = std::exchange(open_, {});
  for (auto& x : result)
    keep(x);
  return result;
}

std::vector<proto::Verdict> verdict_log::close(epoch_number epoch, size_t ranks,
                                               const std::vector<sequence_number>& rerun) {
  ensure(epoch != epoch_number{} && ranks > 0, "an epoch that is open has a number and ranks");
  for (auto& x : open_) {
    auto& done = *x.mutable_outcome();
    ensure(epoch > epoch_number{x.epoch()}, "what is done about a failure is a later epoch");
    done.set_epoch(epoch.value);
    done.set_ranks(static_cast<uint32_t>(ranks));
    for (auto sequence : rerun)
      done.add_rerun(sequence.value);
  }
  return take_open();
}

std::vector<proto::Verdict> verdict_log::close_at_end() {
  for (auto& x : open_)
    x.mutable_outcome()->set_ended(true);
  return take_open();
}

const proto::Verdict* verdict_log::about(device_id device) const {
  const auto names = [=](const proto::Verdict& x) {
    return std::any_of(x.culprits().begin(), x.culprits().end(),
                       [=](auto& each) { return each.device_id() == device.value; });
  };
  if (const auto found = std::find_if(open_.rbegin(), open_.rend(), names); found != open_.rend())
    return &*found;
  const auto found = std::find_if(latest_.rbegin(), latest_.rend(), names);
  return found == latest_.rend() ? nullptr : &*found;
}

} // namespace ringmaster
