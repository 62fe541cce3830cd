#include "gateway/http/server/request_guard.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace ringmaster;
using namespace ringmaster::gateway;

namespace {

const std::string operator_secret = "operator-0123456789", reader_secret = "reader-0123456789";

guard_rules rules() {
  guard_rules result;
  result.operators = *access_token::of(operator_secret, "test");
  return result;
}

request_facts get(const std::string& path = "/api/v1/status") {
  request_facts result;
  result.method = "GET";
  result.path = result.target = path;
  result.host = "127.0.0.1:8080";
  result.host_count = 1;
  return result;
}

request_facts post() {
  auto result = get("/api/v1/devices/0x4/kill");
  result.method = "POST";
  result.authorization = "Bearer " + operator_secret;
  result.content_type = "application/json";
  return result;
}

int status(const request_facts& x, guard_rules by = rules()) {
  const auto refused = request_guard{std::move(by)}.check(x);
  return refused ? refused->status : 200;
}

} // namespace

TEST_CASE("request guard: the Host header names this server") {
  auto x = get();
  for (const auto* host : {"127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:8080", "10.0.0.7:80"}) {
    x.host = host;
    CHECK_MESSAGE(status(x) == 200, host);
  }
  for (const auto* host : {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "",
                           "[", "[::1.evil.example]:80"}) {
    x.host = host;
    CHECK_MESSAGE(status(x) == 403, host);
  }
  auto named = rules();
  named.host_names.insert("gateway.example");
  x.host = "Gateway.Example:443";
  CHECK(status(x, named) == 200);
  x.host_count = 2;
  CHECK(status(x, named) == 403);
  x.host_count = 0;
  CHECK(status(x, named) == 403);
}

TEST_CASE("request guard: what changes something needs the operator's token") {
  auto x = post();
  CHECK(status(x) == 200);
  for (const auto* authorization : {"", "Bearer", "Bearer ", "Bearer operator-012345678", "Bearer operator-01234567890",
                                    "Basic operator-0123456789", "operator-0123456789"}) {
    x.authorization = authorization;
    CHECK_MESSAGE(status(x) == 401, authorization);
  }
  x.authorization = "bearer " + operator_secret;
  CHECK(status(x) == 200);
  auto by = rules();
  by.reader = *access_token::of(reader_secret, "test");
  x.authorization = "Bearer " + reader_secret;
  CHECK(status(x, by) == 401);
  CHECK(status(post(), guard_rules{}) == 403); // nothing can be changed
}

TEST_CASE("request guard: pages of other sites change nothing") {
  auto x = post();
  for (const auto* origin : {"https://evil.example", "http://127.0.0.1:8081", "https://127.0.0.1:8080", "null"}) {
    x.origin = origin;
    CHECK_MESSAGE(status(x) == 403, origin);
  }
  x.origin = "http://127.0.0.1:8080";
  CHECK(status(x) == 200);
  auto by = rules();
  by.tls = true;
  CHECK(status(x, by) == 403);
  x.origin = "";
  for (const auto* site : {"cross-site", "same-site"}) {
    x.fetch_site = site;
    CHECK_MESSAGE(status(x) == 403, site);
  }
  x.fetch_site = "same-origin";
  CHECK(status(x) == 200);
  for (const auto* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain; application/json"}) {
    x.content_type = type;
    CHECK_MESSAGE(status(x) == 415, type);
  }
  x.content_type = "Application/JSON ; charset=utf-8";
  CHECK(status(x) == 200);
}

TEST_CASE("request guard: reading with a token, where reading is not open") {
  guard_rules by;
  by.open_reading = false;
  by.reader = *access_token::of(reader_secret, "test");
  by.operators = *access_token::of(operator_secret, "test");
  auto x = get();
  CHECK(status(x, by) == 401);
  x.authorization = "Bearer " + reader_secret;
  CHECK(status(x, by) == 200);
  x.authorization = "Bearer " + operator_secret;
  CHECK(status(x, by) == 200);
  CHECK(status(get("/metrics"), by) == 401);
  CHECK(status(get("/"), by) == 200); // the page has no secrets, and asks for the token
  CHECK(status(get("/healthz"), by) == 200);
}

TEST_CASE("request guard: without a token for readers processes of the gateway's user read, and operators") {
  auto by = rules();
  by.open_reading = false;
  by.own_user_reading = true;
  auto x = get();
  CHECK(status(x, by) == 401);
  CHECK(status(get("/metrics"), by) == 401);
  CHECK(status(get("/healthz"), by) == 200);
  x.authorization = "Bearer " + operator_secret;
  CHECK(status(x, by) == 200);
  x.authorization.clear();
  x.is_of_own_user = true;
  CHECK(status(x, by) == 200);
}

TEST_CASE("request guard: the form of a request") {
  auto x = get();
  for (const auto* method : {"PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"}) {
    x.method = method;
    CHECK_MESSAGE(status(x) == 405, method);
  }
  x = get();
  x.target = std::string(5000, 'a');
  CHECK(status(x) == 414);
  x = post();
  x.has_transfer_encoding = true;
  CHECK(status(x) == 411);
}

TEST_CASE("access token: the first line of a file") {
  test::temporary_directory dir;
  const auto file = dir.path() / "token";
  const auto read = [&](const std::string& content) {
    std::ofstream{file, std::ios::binary} << content;
    return access_token::read(file);
  };
  const auto good = read(operator_secret + "\r\nmore\n");
  REQUIRE(good);
  CHECK(good->equals(operator_secret));
  CHECK(!good->equals(operator_secret + "\r"));
  CHECK(code_of(read("short\n").error()) == errc::invalid_argument);
  CHECK(code_of(read("").error()) == errc::invalid_argument);
  CHECK(code_of(read("with a blank 0123456789").error()) == errc::invalid_argument);
  CHECK(code_of(read(std::string(5000, 'x')).error()) == errc::invalid_argument);
  CHECK(code_of(access_token::read(dir.path() / "none").error()) == errc::io_error);
}
