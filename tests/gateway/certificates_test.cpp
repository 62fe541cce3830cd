// gRPC and HTTP with TLS, and clients with certificates and without.
#include "actors/links/sockets.hpp"
#include "tests/gateway/http/http_cluster.hpp"
#include "tests/gateway/served_cluster.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/trust_certificates.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <openssl/ssl.h>
#include <string>
#include <sys/socket.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::gateway;

namespace {

course_client grpc_client(const served_cluster& served, const grpc::SslCredentialsOptions& options) {
  return course_client{served.gateway().listeners().front().address, -1, grpc::SslCredentials(options)};
}

grpc::Status heartbeat(course_client client) {
  return client.call<course::GetCommStatusResponse>("GPUCoordinator/GetCommStatus", course::GetCommStatusRequest{})
    .status;
}

/// Whether a handshake with this version, and no later one, succeeds.
bool speaks_tls(int port, int version) {
  const auto there = *numeric_address({"127.0.0.1", static_cast<uint16_t>(port)});
  const open_socket socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(::connect(socket.descriptor, there.get(), there.size) == 0);
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context{::SSL_CTX_new(::TLS_client_method()),
                                                                    &::SSL_CTX_free};
  ::SSL_CTX_set_max_proto_version(context.get(), version);
  constexpr unsigned char http2[] = {2, 'h', '2'}; // which gRPC wants
  ::SSL_CTX_set_alpn_protos(context.get(), http2, sizeof http2);
  const std::unique_ptr<SSL, decltype(&::SSL_free)> session{::SSL_new(context.get()), &::SSL_free};
  ::SSL_set_fd(session.get(), socket.descriptor);
  return ::SSL_connect(session.get()) == 1;
}

} // namespace

TEST_CASE("certificates: gRPC with TLS serves clients that the authority has signed, and no others") {
  const trust_authority authority, other{"another-authority"};
  const auto host = authority.certify(loopback_host()), alice = authority.certify({"alice", role::client, {}}),
             mallory = other.certify({"mallory", role::client, {}});
  const auto& root = authority.own().certificate;
  const served_cluster served{lab_listener, 2, {"--device.memory-bytes=1MiB"}, {}, {host.certificate, host.key, root}};
  const auto is_served = [&](const grpc::SslCredentialsOptions& options) {
    return heartbeat(grpc_client(served, options)).error_code() != grpc::StatusCode::UNAVAILABLE;
  };
  CHECK(is_served({root, alice.key, alice.certificate}));
  CHECK_FALSE(is_served({root, "", ""}));
  CHECK_FALSE(is_served({root, mallory.key, mallory.certificate}));
  CHECK_FALSE(is_served({other.own().certificate, alice.key, alice.certificate}));
  CHECK(heartbeat(served.client_of()).error_code() == grpc::StatusCode::UNAVAILABLE); // without TLS
}

TEST_CASE("certificates: gRPC and HTTP accept TLS 1.3, and no earlier version") {
  const temporary_directory dir;
  const trust_authority authority;
  const auto host = authority.write(dir.path(), "host", authority.certify(loopback_host()));
  const auto ready = (dir.path() / "ready").string();
  launch::launched_program program{{RINGMASTER_GATEWAY_PROGRAM, "--device.count=1", "--grpc", "127.0.0.1:0",
                                    "--grpc-certificate", host.certificate, "--grpc-key", host.key, "--http",
                                    "127.0.0.1:0", "--http-certificate", host.certificate, "--http-key", host.key,
                                    "--ready-file", ready}};
  REQUIRE_MESSAGE(program.wait_until([&] { return std::filesystem::exists(ready); }), program.error);
  std::ifstream lines{ready};
  size_t servers = 0;
  for (std::string line; std::getline(lines, line); ++servers) {
    CAPTURE(line);
    const auto port = line.substr(line.find("127.0.0.1:") + 10);
    CHECK(speaks_tls(std::stoi(port), TLS1_3_VERSION));
    CHECK_FALSE(speaks_tls(std::stoi(port), TLS1_2_VERSION));
  }
  CHECK(servers == 2);
}

TEST_CASE("certificates: with a token gRPC serves those that present it, and no others") {
  gateway::caller_rules callers;
  callers.token = *access_token::of("0123456789abcdef", "the test's token");
  const served_cluster served{lab_listener, 2, {"--device.memory-bytes=1MiB"}, {}, {}, callers};
  const auto code_with = [&](const std::string& authorization) {
    return served.client_of()
      .call<course::GetCommStatusResponse>("GPUCoordinator/GetCommStatus", course::GetCommStatusRequest{},
                                           std::chrono::seconds{10}, {{"authorization", authorization}})
      .status.error_code();
  };
  CHECK(code_with("Bearer 0123456789abcdeg") == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(heartbeat(served.client_of()).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(code_with("Bearer 0123456789abcdef") != grpc::StatusCode::UNAUTHENTICATED);
}

TEST_CASE("certificates: HTTP serves clients that the authority has signed, and no others") {
  const temporary_directory dir;
  const trust_authority authority, other{"another-authority"};
  const auto host = authority.write(dir.path(), "host", authority.certify(loopback_host()));
  const auto alice = authority.write(dir.path(), "alice", authority.certify({"alice", role::client, {}}));
  const auto mallory = other.write(dir.path(), "mallory", other.certify({"mallory", role::client, {}}));
  http_options options;
  options.certificate = host.certificate;
  options.key = host.key;
  options.clients = host.authority;
  http_cluster served{options};
  const auto is_served = [&](httplib::SSLClient client) {
    client.set_ca_cert_path(host.authority.c_str());
    const auto answer = client.Get("/healthz");
    return answer && answer->body == "ok\n";
  };
  CHECK(is_served(httplib::SSLClient{"127.0.0.1", served.port, alice.certificate, alice.key}));
  CHECK_FALSE(is_served(httplib::SSLClient{"127.0.0.1", served.port, mallory.certificate, mallory.key}));
  CHECK_FALSE(is_served(httplib::SSLClient{"127.0.0.1", served.port}));
}
