#include "runtime/metadata/metadata_store.hpp"

#include "messages/errc.hpp"

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

void metadata_store::note(const caf::error& problem) {
  std::scoped_lock lock{mutex_};
  trouble_ = problem ? render(problem) : std::string{};
}

std::string metadata_store::trouble() const {
  std::scoped_lock lock{mutex_};
  return trouble_;
}

std::unique_ptr<metadata_store> metadata_store::in_memory() {
  return std::make_unique<memory_store>();
}

} // namespace ringmaster
