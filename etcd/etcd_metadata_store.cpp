#include "etcd/etcd_metadata_store.hpp"

#include "etcd/lease_clock.hpp"
#include "messages/errc.hpp"
#include "messages/metadata.pb.h"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/metadata/cluster_metadata.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <thread>
#include <utility>

namespace ringmaster {

namespace {

using std::chrono::milliseconds;

/// Below etcd's limits for a transaction (--max-txn-ops 128, --max-request-bytes 1.5 MiB).
constexpr int changes_max = 120;
constexpr size_t transaction_bytes_max = 1 << 20;
constexpr int64_t entries_a_page = 500;
constexpr int tries_a_commit = 10;

/// It also runs while the machine sleeps.
lease_clock::time_point now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return lease_clock::time_point{std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
}

/// The first key after all that start with it.
std::string end_of(std::string prefix) {
  ensure(!prefix.empty() && prefix.back() != '\xff', "a prefix ends with a character that has a next one");
  ++prefix.back();
  return prefix;
}

class etcd_store final : public metadata_store {
public:
  explicit etcd_store(etcd_store_options opts) : options_(std::move(opts)) {}

  ~etcd_store() override { hand_over(); }

  caf::error open() {
    TRY(client, etcd_client::make(options_.access));
    client_ = std::move(*client);
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(options_.lease.count());
    const auto asked = now();
    TRY(lease, client_->grant(request, options_.call));
    lease_ = lease->id();
    length_ = std::chrono::seconds{lease->ttl()};
    clock_.emplace(asked, length_);
    keeper_ = std::thread{[this] { keep_lease(); }};
    return lead();
  }

  caf::expected<entries> load() override {
    RETURN_ERROR(finish_batch());
    entries result;
    RETURN_ERROR(read(store_prefix(), result));
    return result;
  }

  caf::error commit(std::span<const metadata_change> changes) override {
    if (fits(changes))
      return apply(changes);
    RETURN_ERROR(write_batch(changes));
    RETURN_ERROR(apply_in_pieces(changes));
    return erase_batch();
  }

  caf::error look_after() override { return deposed(); }
  bool waits() const override { return true; }
  bool is_shared() const override { return true; }

  bool holds() const override {
    std::scoped_lock lock{mutex_};
    return clock_->holds(now());
  }

  caf::error deposed() const override {
    std::scoped_lock lock{mutex_};
    return clock_->is_lost() ? deposed_error() : caf::error{};
  }

  void announce(const std::string& address) override {
    address_ = address;
    // A put would take the key from its lease; a campaign of the one that leads already changes the value alone.
    v3electionpb::CampaignRequest again;
    again.set_name(leader_.name());
    again.set_lease(lease_);
    again.set_value(description());
    auto changed = client_->campaign(again, options_.call, [] { return false; });
    if (!changed)
      spdlog::warn("etcd does not say where this coordinator listens: {}", render(changed.error()));
  }

  void hand_over() override {
    {
      std::scoped_lock lock{mutex_};
      if (std::exchange(ends_, true))
        return;
      if (clock_)
        clock_->lost();
    }
    wake_.notify_all();
    if (!keeper_.joinable())
      return;
    keeper_.join();
    if (auto problem = client_->revoke(lease_, milliseconds{1000}))
      spdlog::warn("another coordinator takes over only after {}: {}", duration_text(length_), render(problem));
  }

private:
  std::string election() const { return options_.prefix + "leader"; }
  std::string store_prefix() const { return options_.prefix + "store/"; }
  std::string batch_prefix() const { return options_.prefix + "batch/"; }
  std::string batch_end() const { return options_.prefix + "batch/end"; } // after its parts, which are numbered
  std::string description() const {
    return address_.empty() ? options_.name : fmt::format("{} at {}", options_.name, address_);
  }
  caf::error deposed_error() const {
    return make_error(errc::aborted, fmt::format("this coordinator leads no longer: its lease in etcd ({}) has ended, and "
                                                 "another one may serve the cluster",
                                                 duration_text(length_)));
  }

  // -- leading --

  caf::error lead() {
    v3electionpb::CampaignRequest request;
    request.set_name(election());
    request.set_lease(lease_);
    request.set_value(description());
    name_the_leader();
    const auto stop = [this] { return (options_.stop && options_.stop()) || deposed(); };
    auto won = client_->campaign(request, options_.wait, stop);
    if (!won && code_of(won.error()) == errc::timed_out)
      return make_error(errc::in_use,
                        fmt::format("another coordinator leads this cluster{}: --standby waits until it ends", found_));
    if (!won)
      return deposed() ? deposed() : std::move(won.error());
    leader_ = std::move(*won);
    spdlog::info("this coordinator leads (etcd, key {}, revision {})", leader_.key(), leader_.rev());
    return caf::none;
  }

  void name_the_leader() {
    v3electionpb::LeaderRequest request;
    request.set_name(election());
    auto there = client_->leader(request, options_.call);
    if (!there)
      return; // there is none
    found_ = fmt::format(" ({})", there->kv().value());
    spdlog::info("waits to lead: another coordinator does{}", found_);
  }

  /// Runs on a thread of its own.
  void keep_lease() {
    const auto pause = std::max(milliseconds{100}, std::chrono::duration_cast<milliseconds>(length_) / 4);
    bool in_doubt = false;
    std::unique_lock lock{mutex_};
    while (!ends_ && !clock_->is_lost()) {
      wake_.wait_for(lock, pause, [this] { return ends_; });
      if (ends_)
        return;
      lock.unlock();
      const auto asked = now();
      auto answer = client_->keep_alive(lease_, std::max(pause, milliseconds{1500}));
      lock.lock();
      if (answer && answer->ttl() > 0)
        clock_->renewed(asked, std::chrono::seconds{answer->ttl()});
      else if (answer)
        clock_->lost();
      const bool was_in_doubt = std::exchange(in_doubt, !clock_->holds(now()));
      if (in_doubt && !was_in_doubt && !clock_->is_lost())
        spdlog::warn("etcd has not renewed this coordinator's lease for {}, and another one may lead: nothing is served "
                     "until it answers ({})",
                     duration_text(length_), answer ? "it answered late" : render(answer.error()));
      if (!in_doubt && was_in_doubt)
        spdlog::info("etcd has renewed this coordinator's lease: it still leads");
      if (clock_->is_lost() && !ends_)
        spdlog::error("{}", render(deposed_error()));
    }
  }

  // -- reading --

  caf::error read(const std::string& prefix, entries& result) const {
    etcdserverpb::RangeRequest request;
    request.set_key(prefix);
    request.set_range_end(end_of(prefix));
    request.set_limit(entries_a_page);
    for (;;) {
      TRY(page, client_->range(request, options_.call));
      for (auto& each : page->kvs())
        result.emplace(each.key().substr(prefix.size()), each.value());
      if (!page->more() || page->kvs().empty())
        return caf::none;
      request.set_revision(page->header().revision()); // all pages as of one moment
      request.set_key(page->kvs().rbegin()->key() + '\0');
    }
  }

  // -- writing --

  /// The next change of a transaction that only the leader may make.
  etcdserverpb::RequestOp& guarded(etcdserverpb::TxnRequest& to) const {
    if (to.compare().empty()) {
      auto& same = *to.add_compare();
      same.set_result(etcdserverpb::Compare::EQUAL);
      same.set_target(etcdserverpb::Compare::CREATE);
      same.set_key(leader_.key());
      same.set_create_revision(leader_.rev());
    }
    return *to.add_success();
  }

  /// A transaction of which it is not known whether it was carried out is made again: it has the same effect.
  caf::error transact(const etcdserverpb::TxnRequest& what) {
    for (int i = 1;; ++i) {
      if (auto problem = deposed())
        return problem;
      auto answer = client_->transact(what, options_.call);
      if (answer && answer->succeeded())
        return caf::none;
      if (answer) {
        std::scoped_lock lock{mutex_};
        clock_->lost();
        return deposed_error();
      }
      if (code_of(answer.error()) != errc::unreachable || i == tries_a_commit)
        return std::move(answer.error());
    }
  }

  static size_t bytes_of(const metadata_change& x) { return x.key.size() + (x.value ? x.value->size() : 0); }

  static bool fits(std::span<const metadata_change> changes) {
    size_t bytes = 0;
    for (auto& x : changes)
      bytes += bytes_of(x);
    return changes.size() <= changes_max && bytes <= transaction_bytes_max;
  }

  caf::error apply(std::span<const metadata_change> changes) {
    etcdserverpb::TxnRequest request;
    std::map<std::string_view, const metadata_change*> latest; // etcd refuses a transaction that has a key twice
    for (auto& x : changes)
      latest[x.key] = &x;
    for (auto& [key, x] : latest) {
      auto& change = guarded(request);
      if (x->value) {
        change.mutable_request_put()->set_key(store_prefix() + x->key);
        change.mutable_request_put()->set_value(*x->value);
      } else {
        change.mutable_request_delete_range()->set_key(store_prefix() + x->key);
      }
    }
    return latest.empty() ? deposed() : transact(request);
  }

  caf::error apply_in_pieces(std::span<const metadata_change> changes) {
    while (!changes.empty()) {
      size_t count = 0, bytes = 0;
      while (count < changes.size() && count < changes_max
             && (count == 0 || bytes + bytes_of(changes[count]) <= transaction_bytes_max))
        bytes += bytes_of(changes[count++]);
      RETURN_ERROR(apply(changes.first(count)));
      changes = changes.subspan(count);
    }
    return caf::none;
  }

  // A commit that is too large for one transaction is written beside the store first. When the last key of that is there,
  // it counts as done, and the next leader puts it into the store.

  caf::error write_batch(std::span<const metadata_change> changes) {
    proto::StoreChanges all;
    for (auto& x : changes) {
      auto& entry = *all.add_entries();
      entry.set_key(x.key);
      if (x.value)
        entry.set_value(*x.value);
      entry.set_erased(!x.value);
    }
    const auto bytes = all.SerializeAsString();
    for (size_t at = 0, part = 0; at < bytes.size(); at += transaction_bytes_max, ++part) {
      etcdserverpb::TxnRequest request;
      auto& put = *guarded(request).mutable_request_put();
      put.set_key(fmt::format("{}{:08}", batch_prefix(), part));
      put.set_value(bytes.substr(at, transaction_bytes_max));
      RETURN_ERROR(transact(request));
    }
    etcdserverpb::TxnRequest request;
    auto& put = *guarded(request).mutable_request_put();
    put.set_key(batch_end());
    put.set_value("all parts are written");
    return transact(request);
  }

  caf::error erase_batch() {
    etcdserverpb::TxnRequest request;
    auto& range = *guarded(request).mutable_request_delete_range();
    range.set_key(batch_prefix());
    range.set_range_end(end_of(batch_prefix()));
    return transact(request);
  }

  /// What the former leader left in the middle.
  caf::error finish_batch() {
    entries parts;
    RETURN_ERROR(read(batch_prefix(), parts));
    if (parts.empty())
      return caf::none;
    if (parts.erase("end") > 0) {
      std::string bytes;
      for (auto& [number, part] : parts)
        bytes += part;
      proto::StoreChanges all;
      if (!all.ParseFromString(bytes))
        return malformed(fmt::format("the coordinator's store in etcd is corrupt: what is under {} cannot be read. Restore "
                                     "etcd from a copy, or choose another coordinator.etcd-prefix to begin a new cluster",
                                     batch_prefix()));
      RETURN_ERROR(apply_in_pieces(changes_of(all)));
    }
    return erase_batch();
  }

  const etcd_store_options options_;
  std::shared_ptr<etcd_client> client_;
  int64_t lease_ = 0;
  std::chrono::seconds length_{}; ///< Of the lease, as etcd has granted it.
  v3electionpb::LeaderKey leader_;
  std::string address_, found_;
  std::thread keeper_;
  std::condition_variable wake_;
  mutable std::mutex mutex_; ///< For what follows.
  std::optional<lease_clock> clock_;
  bool ends_ = false;
};

} // namespace

caf::expected<std::unique_ptr<metadata_store>> open_etcd_store(etcd_store_options opts) {
  ensure(opts.prefix.ends_with('/'), "a prefix of keys ends with a slash");
  auto result = std::make_unique<etcd_store>(std::move(opts));
  RETURN_ERROR(result->open());
  return std::unique_ptr<metadata_store>{std::move(result)};
}

} // namespace ringmaster
