#include "tests/support/nodes/simulated_store.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/metadata/cluster_metadata.hpp"

#include <algorithm>
#include <utility>

namespace ringmaster::test {

void stored_cluster::apply(const batch& changes, entries& to) {
  for (auto& x : changes)
    if (x.value)
      to[x.key] = *x.value;
    else
      to.erase(x.key);
}

void stored_cluster::write(const batch& changes, bool synced) {
  apply(changes, now_);
  tail_.push_back(changes);
  if (!synced)
    return;
  on_disk_ = now_;
  tail_.clear();
}

void stored_cluster::lose_tail(std::mt19937_64& random) {
  tail_.resize(random() % (tail_.size() + 1));
  now_ = on_disk_;
  for (auto& x : tail_)
    apply(x, now_);
}

simulated_store::simulated_store(options opts) : options_(std::move(opts)) {
  if (!options_.shared)
    return;
  holds_until_ = options_.clock() + options_.lease;
  revision_ = options_.where->lead(holds_until_);
}

caf::error simulated_store::commit(std::span<const metadata_change> changes) {
  if (options_.shared && !options_.where->leads(revision_))
    lost_ = true;
  if (auto problem = deposed())
    return problem;
  const bool is_of_run = std::ranges::any_of(changes, [](auto& x) { return metadata_key::is_of_run(x.key); });
  options_.where->write({changes.begin(), changes.end()}, options_.sync || is_of_run); // as rocksdb_metadata_store does
  return caf::none;
}

caf::error simulated_store::deposed() const {
  return lost_ ? make_error(errc::aborted, "this coordinator leads no longer") : caf::error{};
}

void simulated_store::renew() {
  if (lost_)
    return;
  const auto now = options_.clock();
  if (options_.where->renew(revision_, now, now + options_.lease))
    holds_until_ = now + options_.lease;
  else
    lost_ = true;
}

} // namespace ringmaster::test
