// The store against a real etcd.
#include "etcd/etcd_metadata_store.hpp"
#include "messages/errc.hpp"
#include "messages/metadata.pb.h"
#include "runtime/metadata/cluster_metadata.hpp"
#include "runtime/trust/private_file.hpp"
#include "tests/etcd/started_etcd.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>

#include <array>
#include <future>
#include <thread>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

constexpr auto cluster_prefix = "test/";

etcd_store_options options_of(const started_etcd& etcd, const std::string& name = "one") {
  etcd_store_options result;
  result.access.endpoints = {etcd.endpoint()};
  result.prefix = cluster_prefix;
  result.lease = 2s;
  result.name = name;
  result.wait = 10s;
  return result;
}

std::unique_ptr<metadata_store> opened(etcd_store_options opts) {
  auto store = open_etcd_store(std::move(opts));
  REQUIRE_MESSAGE(store, render(store.error()));
  return std::move(*store);
}

metadata_change set(std::string key, std::string value) {
  return {std::move(key), std::move(value)};
}

void put_raw(etcd_client& client, const std::string& key, const std::string& value) {
  etcdserverpb::TxnRequest request;
  auto& put = *request.add_success()->mutable_request_put();
  put.set_key(cluster_prefix + key);
  put.set_value(value);
  REQUIRE(client.transact(request, 5s));
}

int keys_under(etcd_client& client, const std::string& prefix) {
  etcdserverpb::RangeRequest request;
  request.set_key(cluster_prefix + prefix);
  request.set_range_end(cluster_prefix + prefix + "\xff");
  auto found = client.range(request, 5s);
  REQUIRE(found);
  return found->kvs_size();
}

/// As etcd does when a leader has been silent for too long: the only key of the election has the lease's number.
void end_lease_of_leader(etcd_client& client) {
  v3electionpb::LeaderRequest request;
  request.set_name(std::string{cluster_prefix} + "leader");
  auto leader = client.leader(request, 5s);
  REQUIRE(leader);
  const auto key = leader->kv().key();
  REQUIRE_FALSE(client.revoke(static_cast<int64_t>(std::stoull(key.substr(key.rfind('/') + 1), nullptr, 16)), 5s));
}

} // namespace

TEST_CASE("etcd_store: what is committed is found by the next leader, whatever its size") {
  started_etcd etcd;
  const auto client = etcd.client();
  metadata_store::entries expected{{"a", "1"}, {"b", "4"}};
  {
    auto store = opened(options_of(etcd));
    CHECK(store->is_shared());
    CHECK(store->holds());
    CHECK(store->load()->empty());
    CHECK_FALSE(store->commit(std::array{set("a", "1"), set("b", "2"), set("c", "3")}));
    CHECK_FALSE(store->commit(std::array{set("b", "3"), set("b", "4"), metadata_change{"c", std::nullopt}}));
    CHECK(*store->load() == expected);
    std::vector<metadata_change> many; // more than a transaction of etcd, in number and in bytes
    for (int i = 0; i < 1200; ++i) {
      many.push_back(set(fmt::format("n{:04}", i), std::string(3000, 'x')));
      expected.emplace(many.back().key, *many.back().value);
    }
    many.push_back({"a", std::nullopt});
    expected.erase("a");
    CHECK_FALSE(store->commit(many));
  }
  CHECK(keys_under(*client, "batch/") == 0);
  CHECK(keys_under(*client, "leader/") == 0); // it has handed over
  CHECK(*opened(options_of(etcd))->load() == expected);
}

TEST_CASE("etcd_store: a large commit that was cut short is done as a whole, or not at all") {
  started_etcd etcd;
  const auto client = etcd.client();
  proto::StoreChanges batch;
  auto* entry = batch.add_entries();
  entry->set_key("new");
  entry->set_value("value");
  entry = batch.add_entries();
  entry->set_key("old");
  entry->set_erased(true);
  const auto bytes = batch.SerializeAsString();
  for (const bool whole : {false, true}) {
    put_raw(*client, "store/old", "value");
    put_raw(*client, "batch/00000000", bytes.substr(0, 5));
    put_raw(*client, "batch/00000001", bytes.substr(5));
    if (whole)
      put_raw(*client, "batch/end", "all parts are written");
    const auto found = opened(options_of(etcd))->load();
    REQUIRE_MESSAGE(found, render(found.error()));
    CHECK(*found == metadata_store::entries{{whole ? "new" : "old", "value"}});
    CHECK(keys_under(*client, "batch/") == 0);
  }
  put_raw(*client, "batch/00000000", "\xff\xff");
  put_raw(*client, "batch/end", "all parts are written");
  const auto found = opened(options_of(etcd))->load();
  REQUIRE_FALSE(found);
  CHECK(code_of(found.error()) == errc::corrupt);
}

TEST_CASE("etcd_store: one coordinator leads; the next one does at once when it hands over") {
  started_etcd etcd;
  const auto client = etcd.client();
  auto first = opened(options_of(etcd, "the first one"));
  first->announce("127.0.0.1:7077");
  auto impatient = options_of(etcd, "the second one");
  impatient.wait = 200ms;
  const auto refused = open_etcd_store(impatient);
  REQUIRE_FALSE(refused);
  CHECK(code_of(refused.error()) == errc::in_use);
  CHECK(contains(render(refused.error()), "the first one at 127.0.0.1:7077"));
  std::atomic<bool> stops{false};
  auto stopped = options_of(etcd, "the third one");
  stopped.stop = [&] { return stops.load(); };
  auto waiting = std::async(std::launch::async, [&] { return open_etcd_store(stopped); });
  stops = true;
  const auto ended = waiting.get();
  REQUIRE_FALSE(ended);
  CHECK(code_of(ended.error()) == errc::aborted);

  CHECK(start_incarnation(*first, 7)->cluster.incarnation() == 1);
  auto next = std::async(std::launch::async, [&] { return open_etcd_store(options_of(etcd, "the next one")); });
  first->hand_over();
  CHECK_FALSE(first->holds());
  CHECK(code_of(first->commit(std::array{set("a", "1")})) == errc::aborted);
  auto second = next.get();
  REQUIRE_MESSAGE(second, render(second.error()));
  CHECK(start_incarnation(**second, 8)->cluster.incarnation() == 2);
  CHECK(start_incarnation(**second, 8)->cluster.cluster_id() == 7);
}

TEST_CASE("etcd_store: a leader that was replaced changes nothing, and notices that it was") {
  started_etcd etcd;
  const auto client = etcd.client();
  auto former = opened(options_of(etcd, "the former one"));
  REQUIRE_FALSE(former->commit(std::array{set("a", "1")}));
  end_lease_of_leader(*client);
  auto present = opened(options_of(etcd, "the present one"));
  CHECK(code_of(former->commit(std::array{set("a", "2"), set("b", "2")})) == errc::aborted);
  CHECK(code_of(former->deposed()) == errc::aborted);
  CHECK_FALSE(former->holds());
  CHECK(*present->load() == metadata_store::entries{{"a", "1"}});

  end_lease_of_leader(*client); // and one that only waits for the answer to its renewal
  for (auto give_up = std::chrono::steady_clock::now() + 10s; !present->deposed();) {
    REQUIRE(std::chrono::steady_clock::now() < give_up);
    std::this_thread::yield();
  }
  CHECK_FALSE(present->holds());
}

TEST_CASE("etcd_store: errors name the member or the file") {
  etcd_store_options opts;
  opts.prefix = cluster_prefix;
  opts.call = 300ms;
  const auto none = open_etcd_store(opts);
  REQUIRE_FALSE(none);
  CHECK(code_of(none.error()) == errc::invalid_argument);
  const auto port = ports_that_were_free<1>()[0];
  opts.access.endpoints = {fmt::format("http://127.0.0.1:{}", port)};
  const auto silent = open_etcd_store(opts);
  REQUIRE_FALSE(silent);
  CHECK(code_of(silent.error()) == errc::unreachable);
  CHECK(contains(render(silent.error()), opts.access.endpoints[0]));
  opts.access.authority_file = "/nowhere/authority.pem";
  const auto missing = open_etcd_store(opts);
  REQUIRE_FALSE(missing);
  CHECK(contains(render(missing.error()), "/nowhere/authority.pem"));
  CHECK(is_etcd_endpoint("https://[::1]:2379"));
  for (auto* wrong : {"127.0.0.1:2379", "http://", "http://host", "ftp://host:1", "http://host:0", "http://a:1/b"})
    CHECK_FALSE(is_etcd_endpoint(wrong));
}

TEST_CASE("etcd_store: a user of etcd, with TLS") {
  temporary_directory dir;
  const auto file = [&](const char* name) { return (dir.path() / name).string(); };
  const auto make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=etcd "
                    "-addext subjectAltName=IP:127.0.0.1 -keyout "
                    + file("key.pem") + " -out " + file("certificate.pem") + " 2>/dev/null";
  REQUIRE(std::system(make.c_str()) == 0);
  started_etcd etcd{{"--cert-file", file("certificate.pem"), "--key-file", file("key.pem")}, "https"};
  etcd_access how;
  how.endpoints = {etcd.endpoint()};
  how.authority_file = file("certificate.pem");
  etcd.client(how);

  // Its messages of users have the fields of this one.
  const auto channel = [&] {
    grpc::SslCredentialsOptions tls;
    std::ifstream in{file("certificate.pem")};
    tls.pem_root_certs = {std::istreambuf_iterator<char>{in}, {}};
    return grpc::CreateChannel(etcd.endpoint().substr(8), grpc::SslCredentials(tls));
  }();
  const auto call = [&](const char* method, const std::string& name, const std::string& other) {
    etcdserverpb::AuthenticateRequest request;
    request.set_name(name);
    request.set_password(other);
    etcdserverpb::AuthenticateResponse answer;
    grpc::ClientContext context;
    const grpc::internal::RpcMethod which{method, grpc::internal::RpcMethod::NORMAL_RPC, channel};
    const auto status = grpc::internal::BlockingUnaryCall(channel.get(), which, &context, request, &answer);
    REQUIRE_MESSAGE(status.ok(), status.error_message());
  };
  call("/etcdserverpb.Auth/UserAdd", "root", "a password");
  call("/etcdserverpb.Auth/UserGrantRole", "root", "root");
  call("/etcdserverpb.Auth/AuthEnable", "", "");

  auto opts = options_of(etcd);
  opts.access = how;
  const auto stranger = open_etcd_store(opts);
  REQUIRE_FALSE(stranger);
  opts.access.user = "root";
  const auto write = [&](const char* name, std::string_view text) {
    REQUIRE_FALSE(create_private_file(file(name), name, text));
    opts.access.password_file = file(name);
  };
  write("wrong", "another password\n");
  const auto wrong_password = open_etcd_store(opts);
  REQUIRE_FALSE(wrong_password);
  CHECK(code_of(wrong_password.error()) == errc::unauthenticated);
  write("right", "a password\n");
  std::filesystem::permissions(file("right"), std::filesystem::perms{0644});
  const auto open_to_all = open_etcd_store(opts);
  REQUIRE_FALSE(open_to_all);
  CHECK(contains(render(open_to_all.error()), file("right")));
  std::filesystem::permissions(file("right"), std::filesystem::perms{0600});
  auto store = opened(opts);
  CHECK_FALSE(store->commit(std::array{set("a", "1")}));
  CHECK(store->load()->size() == 1);
}
