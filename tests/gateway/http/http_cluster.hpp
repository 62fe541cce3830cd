#pragma once

#include "gateway/http/http_gateway.hpp"
#include "tests/gateway/http/fake_cluster.hpp"
#include "tests/gateway/http/json_shape.hpp"
#include "tests/support/temporary_directory.hpp"

#include <fstream>
#include <httplib.h>

namespace ringmaster::test {

/// A gateway on a free port of the loopback address that serves a fake cluster.
class http_cluster {
public:
  static constexpr auto secret = "operator-0123456789";

  explicit http_cluster(gateway::http_options options = {}, bool with_operators = true) {
    options.where = {"127.0.0.1", 0};
    options.coordinator = "127.0.0.1:7077";
    options.interval = options.idle_interval = std::chrono::milliseconds{5};
    if (with_operators) {
      options.operator_token = (dir_.path() / "token").string();
      std::ofstream{options.operator_token} << secret << '\n';
      std::filesystem::permissions(options.operator_token, std::filesystem::perms::owner_read);
    }
    auto started = gateway::http_gateway::start(std::make_unique<fake_cluster>(cluster), options);
    REQUIRE_MESSAGE(started, render(started.error()));
    server = std::move(*started);
    const auto url = server->url();
    port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }

  /// A client with a connection of its own for each request.
  httplib::Client client() const {
    httplib::Client result{"127.0.0.1", port};
    result.set_read_timeout(20);
    return result;
  }

  /// The answer's document. The status must be `status`.
  json get(const std::string& path, int status = 200) const {
    const auto answer = client().Get(path);
    REQUIRE(answer);
    CHECK_MESSAGE(answer->status == status, path << ": " << answer->body);
    return json::parse(answer->body);
  }

  httplib::Result post(const std::string& path, const std::string& body = "{}",
                       const httplib::Headers& headers = {{"Authorization", std::string{"Bearer "} + secret}}) const {
    return client().Post(path, headers, body, "application/json");
  }

  /// Waits until the server has read what the cluster and its journal have now.
  void await_ready() const {
    const auto before = looks();
    while (looks() < before + 2 || client().Get("/readyz")->status != 200) // the first may have begun earlier
      std::this_thread::yield();
  }

  std::shared_ptr<fake_cluster::contents> cluster = std::make_shared<fake_cluster::contents>();
  std::unique_ptr<gateway::http_gateway> server;
  uint16_t port = 0;

private:
  uint64_t looks() const {
    std::scoped_lock lock{cluster->mutex};
    return cluster->looks;
  }

  temporary_directory dir_;
};

} // namespace ringmaster::test
