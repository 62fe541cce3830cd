#include "gateway/http/state/client_source.hpp"

#include "messages/errc.hpp"

namespace ringmaster::gateway {

namespace {

bool has_failed(const caf::error& x) {
  return static_cast<bool>(x);
}

template <class T>
bool has_failed(const caf::expected<T>& x) {
  return !x;
}

} // namespace

template <class Call>
auto client_source::with_client(Call call) {
  client_handle user;
  {
    std::scoped_lock lock{mutex_};
    if (!idle_.empty()) {
      user = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!user)
    user = std::make_unique<client>(system_, coordinator_, limit_);
  auto result = call(*user);
  if (!has_failed(result)) { // a client whose limit has passed may still get the answer
    std::scoped_lock lock{mutex_};
    idle_.push_back(std::move(user));
  }
  return result;
}

caf::expected<proto::ClusterStatus> client_source::status() {
  return with_client([](client& user) { return user.cluster_status(); });
}

caf::expected<proto::JournalTailResponse> client_source::journal(const proto::JournalTailRequest& x) {
  return with_client([&](client& user) { return user.ask<proto::JournalTailResponse>(x); });
}

caf::error client_source::inject(device_id device, const proto::FaultRequest& fault) {
  return with_client([&](client& user) { return user.inject(device, fault); });
}

caf::expected<std::vector<std::string>> client_source::drain(const std::string& node, caf::timespan within) {
  return with_client([&](client& user) { return user.drain(node, within); });
}

} // namespace ringmaster::gateway
