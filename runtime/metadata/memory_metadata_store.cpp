#include "runtime/metadata/metadata_store.hpp"

namespace ringmaster {

namespace {

class memory_store final : public metadata_store {
public:
  caf::expected<entries> load() override { return entries_; }
  caf::error commit(std::span<const metadata_change> changes) override {
    for (auto& x : changes)
      if (x.value)
        entries_[x.key] = *x.value;
      else
        entries_.erase(x.key);
    return caf::none;
  }
  caf::error look_after() override { return caf::none; }
  bool waits() const override { return false; }

private:
  entries entries_;
};

} // namespace

std::unique_ptr<metadata_store> metadata_store::in_memory() {
  return std::make_unique<memory_store>();
}

} // namespace ringmaster
