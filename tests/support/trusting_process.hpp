#pragma once

#include "actors/configuration/configuration.hpp"
#include "actors/hosts/connection_watch.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/hosts/process_trust.hpp"

#include <caf/all.hpp>
#include <caf/io/middleman.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::test {

/// Variables of this process, as they are to be while one lives.
class variables_of_trust {
public:
  explicit variables_of_trust(const std::string& runtime_dir) {
    for (const auto* name : names) {
      const auto* value = ::getenv(name);
      before_.push_back(value == nullptr ? std::nullopt : std::optional<std::string>{value});
      ::unsetenv(name);
    }
    ::setenv(names[0], runtime_dir.c_str(), 1);
  }
  ~variables_of_trust() {
    for (size_t i = 0; i < before_.size(); ++i)
      if (before_[i])
        ::setenv(names[i], before_[i]->c_str(), 1);
      else
        ::unsetenv(names[i]);
  }
  variables_of_trust(const variables_of_trust&) = delete;
  variables_of_trust& operator=(const variables_of_trust&) = delete;

private:
  static constexpr const char* names[] = {
    "XDG_RUNTIME_DIR",        "TMPDIR",         "RINGMASTER_SECRET",   "RINGMASTER_SECRET_FILE",
    "RINGMASTER_CERTIFICATE", "RINGMASTER_KEY", "RINGMASTER_AUTHORITY"};
  std::vector<std::optional<std::string>> before_;
};

struct trusting_process {
  struct configuration : caf::actor_system_config, trust_source {
    explicit configuration(trust_settings x) : settings(std::move(x)) {
      set("scheduler.max-threads", 1);
      load<watched_middleman>();
      add_messages(*this);
    }
    trust_settings trust() const override { return settings; }
    trust_settings settings;
  };

  explicit trusting_process(trust_settings x) : cfg(std::move(x)) {}

  configuration cfg;
  caf::actor_system system{cfg};
};

struct door_of_process : trusting_process {
  explicit door_of_process(const trust_settings& x, uint16_t wanted = 0) : trusting_process(x) {
    auto add = [](caf::event_based_actor*, uint64_t y) -> caf::behavior { return {[y](uint64_t z) { return y + z; }}; };
    whom = system.spawn(add, uint64_t{1}); // without arguments CAF binds a reference to none
    auto given = listen_for(whom, system, "127.0.0.1", wanted);
    REQUIRE_MESSAGE(given, render(given.error()));
    port = *given;
  }
  ~door_of_process() { caf::anon_send_exit(whom, caf::exit_reason::user_shutdown); }

  caf::expected<published_actor> enter_as(const trust_settings& x, const std::string& host = "127.0.0.1") const {
    trusting_process guest{x};
    return connect_to(guest.system, {host, port}, std::chrono::seconds{10});
  }

  open_socket visitor() const { return std::move(*open_connection({"127.0.0.1", port}, std::chrono::seconds{5})); }

  caf::actor whom;
  uint16_t port = 0;
};

} // namespace ringmaster::test
