#pragma once

#include "etcd/etcd_client.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace ringmaster::test {

/// Ports that were free a moment ago, each another one.
template <size_t N>
std::array<uint16_t, N> ports_that_were_free() {
  std::array<int, N> sockets{};
  std::array<uint16_t, N> result{};
  for (size_t i = 0; i < N; ++i) {
    sockets[i] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(sockets[i], reinterpret_cast<sockaddr*>(&address), bytes) == 0);
    REQUIRE(::getsockname(sockets[i], reinterpret_cast<sockaddr*>(&address), &bytes) == 0);
    result[i] = ntohs(address.sin_port);
  }
  for (auto each : sockets)
    ::close(each);
  return result;
}

/// A cluster of etcd with one member, on loopback, which ends with this object.
class started_etcd {
public:
  explicit started_etcd(const std::vector<std::string>& more = {}, const std::string& scheme = "http")
    : endpoint_(scheme + "://127.0.0.1:" + std::to_string(ports_[0])), program_(command(more)) {}

  const std::string& endpoint() const { return endpoint_; }

  /// Waits until it answers.
  std::shared_ptr<etcd_client> client(etcd_access how = {}) {
    how.endpoints = {endpoint_};
    auto made = etcd_client::make(how);
    REQUIRE_MESSAGE(made, render(made.error()));
    etcdserverpb::RangeRequest any;
    any.set_key("any");
    auto answer = (*made)->range(any, std::chrono::seconds{15});
    REQUIRE_MESSAGE(answer, render(answer.error()));
    return std::move(*made);
  }

private:
  std::vector<std::string> command(const std::vector<std::string>& more) const {
    const auto peers = "http://127.0.0.1:" + std::to_string(ports_[1]);
    std::vector<std::string> result{"etcd",
                                    "--data-dir",
                                    (dir_.path() / "data").string(),
                                    "--listen-client-urls",
                                    endpoint_,
                                    "--advertise-client-urls",
                                    endpoint_,
                                    "--listen-peer-urls",
                                    peers,
                                    "--initial-advertise-peer-urls",
                                    peers,
                                    "--initial-cluster",
                                    "default=" + peers};
    result.insert(result.end(), more.begin(), more.end());
    return result;
  }

  temporary_directory dir_;
  std::array<uint16_t, 2> ports_ = ports_that_were_free<2>();
  std::string endpoint_;
  launch::launched_program program_;
};

} // namespace ringmaster::test
