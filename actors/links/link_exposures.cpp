#include "actors/links/link_exposures.hpp"

#include <utility>

namespace ringmaster {

void link_exposures::add(const transfer_key& key, std::shared_ptr<exposed_block> block) {
  std::lock_guard guard{mutex_};
  blocks_[key] = std::move(block);
}

void link_exposures::remove(const transfer_key& key, const exposed_block& block) {
  std::lock_guard guard{mutex_};
  if (auto i = blocks_.find(key); i != blocks_.end() && i->second.get() == &block)
    blocks_.erase(i);
}

std::shared_ptr<exposed_block> link_exposures::find(const transfer_key& key, device_id device) const {
  std::lock_guard guard{mutex_};
  auto i = blocks_.find(key);
  return i != blocks_.end() && i->second->window.device == device ? i->second : nullptr;
}

link_exposure::link_exposure(std::shared_ptr<link_exposures> all, const transfer_key& key, const device_window& window)
  : all_(std::move(all)), key_(key), block_(std::make_shared<exposed_block>()) {
  block_->window = window;
  all_->add(key_, block_);
}

link_exposure::~link_exposure() {
  block_->withdrawn = true;
  all_->remove(key_, *block_);
}

} // namespace ringmaster
