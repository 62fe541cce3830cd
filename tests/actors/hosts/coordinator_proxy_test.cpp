#include "actors/hosts/coordinator_proxy.hpp"

#include "messages/errc.hpp"
#include "tests/support/deterministic_system.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// What the coordinator does with requests for a status.
enum class status_requests { answers, bounces };

/// A coordinator as a proxy sees it. `is_connected`: else CAF itself says that no one receives what is sent to it.
caf::behavior stand_in(caf::event_based_actor* self, status_requests what, bool is_connected) {
  self->set_default_handler(caf::drop);
  return {[=](const gpu_sim::GetCommStatusRequest&) -> caf::result<gpu_sim::GetCommStatusResponse> {
            if (what == status_requests::bounces)
              return caf::error{caf::sec::request_receiver_down};
            gpu_sim::GetCommStatusResponse answer;
            answer.set_status(gpu_sim::SUCCESS);
            return answer;
          },
          [=](const proto::GreetingRequest&) -> caf::result<proto::GreetingResponse> {
            if (!is_connected)
              return caf::error{caf::sec::request_receiver_down};
            return proto::GreetingResponse{};
          }};
}

struct proxied_coordinator {
  proxied_coordinator(status_requests what, bool is_connected) {
    identity.set_cluster_id(7);
    identity.set_incarnation(1);
    first = make(what, is_connected);
    coordinator_way way;
    way.look = [this](const proto::ClusterIdentity&, coordinator_way::found found) { then = std::move(found); };
    proxy = make_coordinator_proxy(system.sys, {first, identity, {}}, std::move(way));
  }
  ~proxied_coordinator() { system.stop(first, second, proxy); }

  coordinator_actor make(status_requests what, bool is_connected) {
    return caf::actor_cast<coordinator_actor>(system.sys.spawn(stand_in, what, is_connected));
  }

  /// The first one ends, and another one is found in its place.
  void restart() {
    system.self->send_exit(first, caf::exit_reason::kill);
    system.deliver_all();
    REQUIRE(then);
    identity.set_incarnation(2);
    second = make(status_requests::answers, true);
    std::exchange(then, nullptr)(found_coordinator{second, identity, {}});
    system.deliver_all();
  }

  deterministic_system system;
  proto::ClusterIdentity identity;
  coordinator_actor first, second, proxy;
  coordinator_way::found then;
};

} // namespace

TEST_CASE("coordinator proxy: a coordinator that ends before it answers a greeting may be there later") {
  caf::actor_system_config config;
  add_messages(config);
  caf::actor_system system{config};
  const auto greeted = [&](bool ends) {
    const auto behaviour = [=](caf::event_based_actor* self) -> caf::behavior {
      const auto kept = std::make_shared<std::optional<caf::response_promise>>();
      return {[=](const proto::GreetingRequest&) -> caf::result<proto::GreetingResponse> {
        if (ends)
          return caf::error{caf::sec::request_receiver_down};
        auto promise = self->make_response_promise<proto::GreetingResponse>();
        kept->emplace(promise);
        return promise;
      }};
    };
    const auto actor = system.spawn(behaviour);
    const auto answer = greet(system, caf::actor_cast<coordinator_actor>(actor), nullptr,
                              std::chrono::milliseconds{50});
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    REQUIRE_FALSE(answer);
    return code_of(answer.error());
  };
  CHECK(greeted(true) == errc::unreachable);
  CHECK(greeted(false) == errc::timed_out);
}

TEST_CASE("coordinator proxy: a request that the connection's end has bounced waits for the coordinator's return") {
  proxied_coordinator x{status_requests::bounces, false};
  auto pending = x.system.self->request(x.proxy, caf::infinite, gpu_sim::GetCommStatusRequest{});
  x.system.deliver_all();
  x.restart();
  bool is_answered = false;
  REQUIRE(x.system.self->has_next_message());
  pending.receive([&](const gpu_sim::GetCommStatusResponse& y) { is_answered = y.status() == gpu_sim::SUCCESS; },
                  [](const caf::error& problem) { FAIL(render(problem)); });
  CHECK(is_answered);
}

TEST_CASE("coordinator proxy: what a coordinator that is there says of an actor that has ended is an answer") {
  proxied_coordinator x{status_requests::bounces, true};
  const auto answer = x.system.ask<gpu_sim::GetCommStatusResponse>(x.proxy, gpu_sim::GetCommStatusRequest{});
  REQUIRE_FALSE(answer);
  CHECK(answer.error() == caf::sec::request_receiver_down);
  x.restart();
  CHECK(x.system.ask<gpu_sim::GetCommStatusResponse>(x.proxy, gpu_sim::GetCommStatusRequest{}));
}
