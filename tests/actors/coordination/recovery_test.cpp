#include "actors/calls/answers.hpp"
#include "actors/coordination/coordinator.hpp"
#include "messages/version.hpp"
#include "tests/support/deterministic_system.hpp"
#include "tests/support/text_search.hpp"

#include <optional>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// A store that fails as long as a test wants it to.
class moody_store final : public metadata_store {
public:
  caf::expected<entries> load() override { return inner_->load(); }
  caf::error commit(std::span<const metadata_change> changes) override {
    if (fails)
      return make_error(errc::io_error, "the disk is full");
    ++commits;
    return inner_->commit(changes);
  }
  caf::error look_after() override { return fails ? make_error(errc::io_error, "it was removed") : caf::error{}; }
  bool waits() const override { return false; }
  bool is_shared() const override { return true; }
  bool holds() const override { return leads; }
  caf::error deposed() const override {
    return is_deposed ? make_error(errc::aborted, "another one leads") : caf::error{};
  }

  bool fails = false;
  bool leads = true; ///< For certain.
  bool is_deposed = false;
  size_t commits = 0;

private:
  std::unique_ptr<metadata_store> inner_ = metadata_store::in_memory();
};

/// A coordinator without nodes, on a store.
struct lone_coordinator {
  explicit lone_coordinator(bool stop_without_store = false) {
    coordinator_options options;
    auto run = start_incarnation(*store, 4711);
    REQUIRE(run);
    options.identity.set_cluster_id(run->cluster.cluster_id());
    options.identity.set_incarnation(run->cluster.incarnation());
    options.found = std::move(*run);
    options.store = store;
    options.stop_without_store = stop_without_store;
    host = system.sys.spawn<fair_coordinator>(std::move(options));
    system.deliver_all();
  }
  ~lone_coordinator() { system.stop(host); }

  caf::expected<proto::GreetingResponse> greet(uint64_t cluster, uint64_t incarnation) {
    proto::GreetingRequest request;
    request.mutable_expected()->set_cluster_id(cluster);
    request.mutable_expected()->set_incarnation(incarnation);
    return system.ask<proto::GreetingResponse>(host, std::move(request));
  }
  /// A device's id is one of what is stored before it is given.
  uint64_t new_device() {
    auto answer = system.ask<proto::DeviceJoinResponse>(host, proto::DeviceJoinRequest{});
    REQUIRE(answer);
    return answer->device_id();
  }
  std::string trouble() {
    auto info = system.ask<proto::ClusterInfo>(host, proto::ClusterInfoRequest{});
    REQUIRE(info);
    return info->journal_trouble();
  }
  bool has_ended() {
    std::optional<caf::error> why;
    system.self->monitor(host);
    system.deliver_all();
    system.self->receive([&](caf::down_msg& x) { why = x.reason; }, caf::after(0s) >> [] {});
    if (!why)
      system.self->demonitor(host->address());
    return why.has_value();
  }

  std::shared_ptr<moody_store> store = std::make_shared<moody_store>();
  deterministic_system system;
  coordinator_actor host;
};

} // namespace

TEST_CASE("recovery: a greeting says which cluster and which run it is, and refuses who expects another cluster") {
  lone_coordinator x;
  auto any = x.system.ask<proto::GreetingResponse>(x.host, proto::GreetingRequest{});
  REQUIRE(any);
  CHECK(any->cluster().cluster_id() == 4711);
  CHECK(any->cluster().incarnation() == 1);
  CHECK(x.greet(4711, 1)->error() == "");
  auto other = x.greet(815, 1);
  REQUIRE(other);
  CHECK(error_in(*other) == errc::refused);
  CHECK(contains(other->error(), "another cluster"));
  CHECK_FALSE(x.has_ended());
}

TEST_CASE("recovery: a coordinator that hears of a later incarnation ends, and has served nothing in between") {
  lone_coordinator x;
  auto answer = x.greet(4711, 2);
  REQUIRE(answer);
  CHECK(error_in(*answer) == errc::aborted);
  CHECK(contains(answer->error(), "incarnation 2"));
  CHECK(x.has_ended());
}

TEST_CASE("recovery: a coordinator that may have been replaced serves nothing until it is certain that it leads") {
  lone_coordinator x;
  x.store->leads = false;
  auto greeting = x.system.self->request(x.host, caf::infinite, proto::GreetingRequest{});
  auto info = x.system.self->request(x.host, caf::infinite, proto::ClusterInfoRequest{});
  x.system.deliver_all();
  CHECK_FALSE(x.system.self->has_next_message());
  x.store->leads = true;
  caf::anon_send(x.host, atom::tick_v); // as its process does when the store says so
  x.system.deliver_all();
  bool greeted = false, informed = false;
  greeting.receive([&](const proto::GreetingResponse&) { greeted = true; }, [](const caf::error&) {});
  info.receive([&](const proto::ClusterInfo&) { informed = true; }, [](const caf::error&) {});
  CHECK(greeted);
  CHECK(informed);
}

TEST_CASE(
  "recovery: what could not be stored is not said while another coordinator may lead, and one that was replaced "
  "ends") {
  lone_coordinator x;
  x.store->fails = true;
  size_t answered = 0;
  const auto ask = [&] { // for an id; those that are reserved are given without the store
    x.system.self->send(x.host, proto::DeviceJoinRequest{});
    x.system.scheduler.run_once(); // the coordinator; the store answers after it
  };
  const auto count = [&] {
    x.system.self->receive_while([&] {
      return x.system.self->has_next_message();
    })([&](const proto::DeviceJoinResponse&) { ++answered; }, [](const caf::error&) {});
  };
  size_t asked = 0;
  while (asked == answered && asked < 2000) {
    ask();
    ++asked;
    count();
  }
  REQUIRE(asked == answered + 1);
  x.store->leads = false;
  x.system.deliver_all();
  count();
  CHECK(asked == answered + 1); // it waits
  x.store->is_deposed = true;
  x.system.advance(1s);
  CHECK(x.has_ended());
  count();
  CHECK(answered + 1 == asked);
}

TEST_CASE("recovery: a node of another cluster, and one that counts as lost, are refused") {
  lone_coordinator x;
  const auto join_with = [&](uint64_t cluster) {
    proto::NodeJoinRequest request;
    request.set_name("alpha");
    request.set_node_id(3);
    request.set_protocol(protocol_version);
    request.mutable_cluster()->set_cluster_id(cluster);
    auto pending = x.system.self->request(x.host, caf::infinite, std::move(request), x.system.self->ctrl(),
                                          device_handles{});
    x.system.deliver_all();
    proto::NodeJoinResponse result;
    pending.receive([&](proto::NodeJoinResponse& y, const caf::strong_actor_ptr&) { result = std::move(y); },
                    [&](const caf::error& problem) { FAIL(render(problem)); });
    return result.error();
  };
  CHECK(contains(join_with(815), "of another cluster"));
  CHECK(contains(join_with(4711), "counts as lost"));
}

TEST_CASE("recovery: a store that fails is reported at once, tried again, and behind in nothing when it works") {
  lone_coordinator x;
  CHECK(x.trouble() == "");
  x.store->fails = true;
  for (int i = 0; i < 1100; ++i) // the mark of ids moves
    x.new_device();
  CHECK(contains(x.trouble(), "the disk is full"));
  CHECK_FALSE(x.has_ended());
  const auto commits = x.store->commits;
  x.system.advance(1100ms);
  CHECK(contains(x.trouble(), "the disk is full"));
  x.store->fails = false;
  x.system.advance(1100ms);
  CHECK(x.trouble() == "");
  CHECK(x.store->commits == commits + 1); // all that had come meanwhile together
  const auto found = cluster_metadata::of(*x.store->load());
  REQUIRE(found);
  CHECK(found->ids.device_id() > 1100);
}

TEST_CASE("recovery: where it is configured so, a coordinator ends when its store fails") {
  lone_coordinator x{true};
  x.store->fails = true;
  for (int i = 0; i < 1100 && !x.has_ended(); ++i)
    caf::anon_send(x.host, proto::DeviceJoinRequest{});
  CHECK(x.has_ended());
}
