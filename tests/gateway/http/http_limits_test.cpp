// What a server does with clients that send too much, too slowly, or nothing.
#include "tests/gateway/http/http_cluster.hpp"
#include "tests/gateway/http/loopback_client.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

using namespace ringmaster;
using namespace ringmaster::gateway;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

const std::string host = "Host: 127.0.0.1\r\n";

/// A certificate that signs itself, and its key, as PEM files.
void write_certificate(const std::string& certificate, const std::string& key) {
  auto* pair = ::EVP_EC_gen("P-256");
  REQUIRE(pair != nullptr);
  auto* x = ::X509_new();
  ::ASN1_INTEGER_set(::X509_get_serialNumber(x), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(x), 0);
  ::X509_gmtime_adj(::X509_getm_notAfter(x), 3600);
  ::X509_set_pubkey(x, pair);
  auto* name = ::X509_get_subject_name(x);
  ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1,
                               0);
  ::X509_set_issuer_name(x, name);
  REQUIRE(::X509_sign(x, pair, ::EVP_sha256()) != 0);
  auto* file = std::fopen(certificate.c_str(), "w");
  ::PEM_write_X509(file, x);
  std::fclose(file);
  file = std::fopen(key.c_str(), "w");
  ::PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  ::X509_free(x);
  ::EVP_PKEY_free(pair);
}

} // namespace

TEST_CASE("http limits: a request that comes too slowly is given up, however often a byte comes") {
  http_options options;
  options.limits.request = 100ms;
  http_cluster served{options};
  loopback_client silent{served.port};
  CHECK(silent.send("GET /healthz HTTP/1.1\r\nHost: 127"));
  CHECK(silent.is_closed_by_server());
  loopback_client dripping{served.port};
  CHECK(dripping.send("GET /healthz HTTP/1.1\r\nX: "));
  while (dripping.send("x")) // fails when the server has closed
    std::this_thread::yield();
  CHECK(served.client().Get("/healthz")->status == 200);
}

TEST_CASE("http limits: headers and bodies") {
  http_cluster served;
  loopback_client many{served.port};
  std::string headers = "GET /healthz HTTP/1.1\r\n" + host;
  for (int i = 0; i < 10'000; ++i)
    headers += "X-" + std::to_string(i) + ": some text\r\n";
  many.send(headers + "\r\n");
  CHECK(many.read_until("\r\n\r\n").find(" 200 ") == std::string::npos);
  CHECK(many.is_closed_by_server());
  loopback_client chunked{served.port};
  chunked.send("POST /api/v1/devices/1/kill HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n");
  CHECK(chunked.read_until("\r\n\r\n").find(" 411 ") != std::string::npos);
  CHECK(chunked.is_closed_by_server());
  loopback_client endless{served.port};
  endless.send("POST /api/v1/devices/1/kill HTTP/1.1\r\n" + host + "Authorization: Bearer " + http_cluster::secret
               + "\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n");
  std::string more(100'000, 'x');
  endless.send(more);
  CHECK(endless.is_closed_by_server());
  CHECK(served.client().Get("/healthz")->status == 200);
}

TEST_CASE("http limits: the body of a refused request is no request") {
  http_cluster served;
  loopback_client smuggler{served.port};
  const std::string inner = "GET /healthz HTTP/1.1\r\n" + host + "\r\n";
  smuggler.send("POST /api/v1/devices/1/kill HTTP/1.1\r\n" + host + "Content-Length: " + std::to_string(inner.size())
                + "\r\n\r\n" + inner);
  const auto all = smuggler.read_until("nothing ends this");
  CHECK(all.find(" 401 ") != std::string::npos);
  CHECK(all.find(" 200 ") == std::string::npos);
}

TEST_CASE("http limits: what is no HTTP") {
  http_cluster served;
  for (const std::string text : {"\r\n\r\n", "hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
                                 "\x16\x03\x01\x02\x01\x01\r\n\r\n", "GET /healthz HTTP/1.1\r\n\r\n"}) {
    loopback_client client{served.port};
    client.send(text);
    CHECK_MESSAGE(client.read_until("\r\n\r\n").find(" 200 ") == std::string::npos, text);
  }
  loopback_client nulls{served.port};
  nulls.send(std::string("GET /healthz\0 HTTP/1.1\r\n\r\n", 27));
  CHECK(nulls.is_closed_by_server());
  for (const auto* path : {"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/v1/../../etc/passwd"})
    CHECK(served.client().Get(path)->status == 404);
}

TEST_CASE("http limits: connections beyond the limit are refused at once, and idle ones are closed") {
  http_options options;
  options.event_streams_max = 1;
  options.requests_max = 3;
  options.limits.idle = 200ms;
  http_cluster served{options};
  std::deque<loopback_client> idle;
  for (int i = 0; i < 4; ++i)
    CHECK(idle.emplace_back(served.port).is_connected());
  loopback_client one_more{served.port};
  one_more.send("GET /healthz HTTP/1.1\r\n" + host + "\r\n");
  CHECK(one_more.read_until("\r\n\r\n").find(" 503 ") != std::string::npos);
  for (auto& each : idle)
    CHECK(each.is_closed_by_server());
  CHECK(served.client().Get("/healthz")->status == 200);
}

TEST_CASE("http limits: a connection serves several requests, one after the other") {
  http_cluster served;
  loopback_client client{served.port};
  const std::string request = "GET /healthz HTTP/1.1\r\n" + host + "\r\n";
  client.send(request + request);
  const auto first = client.read_until("ok\n");
  const auto both = first.find("ok\n") == first.rfind("ok\n") ? first + client.read_until("ok\n") : first;
  CHECK(both.find("ok\n") != both.rfind("ok\n"));
  client.send("GET /healthz HTTP/1.1\r\nConnection: close\r\n" + host + "\r\n");
  CHECK(client.is_closed_by_server());
}

TEST_CASE("http limits: ranges are ignored") {
  http_cluster served;
  const auto answer = served.client().Get("/healthz", {{"Range", "bytes=0-0,0-0,0-0"}});
  REQUIRE(answer);
  CHECK(answer->body == "ok\n");
}

TEST_CASE("http limits: TLS 1.2 and later") {
  temporary_directory dir;
  http_options options;
  options.certificate = (dir.path() / "certificate.pem").string();
  options.key = (dir.path() / "key.pem").string();
  write_certificate(options.certificate, options.key);
  http_cluster served{options};
  CHECK(served.server->url().starts_with("https://"));
  httplib::SSLClient client{"127.0.0.1", served.port};
  client.enable_server_certificate_verification(false);
  const auto answer = client.Get("/healthz");
  REQUIRE(answer);
  CHECK(answer->body == "ok\n");
  ::SSL_CTX_set_max_proto_version(client.ssl_context(), TLS1_1_VERSION);
  CHECK(!client.Get("/healthz"));
  loopback_client plain{served.port};
  plain.send("GET /healthz HTTP/1.1\r\n" + host + "\r\n");
  CHECK(plain.is_closed_by_server());
  loopback_client silent{served.port}; // its handshake delays no other
  httplib::SSLClient other{"127.0.0.1", served.port};
  other.enable_server_certificate_verification(false);
  CHECK(other.Get("/api/v1/info"));
}
