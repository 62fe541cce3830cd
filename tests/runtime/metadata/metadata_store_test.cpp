#include "messages/errc.hpp"
#include "runtime/metadata/cluster_metadata.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

namespace fs = std::filesystem;

metadata_change put(std::string key, std::string value) {
  return {std::move(key), std::move(value)};
}

std::unique_ptr<metadata_store> opened_store(const fs::path& dir) {
  auto store = metadata_store::open({.dir = dir, .sync = false});
  REQUIRE_MESSAGE(store, render(store.error()));
  return std::move(*store);
}

metadata_store::entries entries_in(const fs::path& dir) {
  auto found = opened_store(dir)->load();
  REQUIRE(found);
  return std::move(*found);
}

/// The file of the changes that were written last.
fs::path log_in(const fs::path& dir) {
  fs::path result;
  for (auto& entry : fs::directory_iterator{dir})
    if (entry.path().extension() == ".log" && (result.empty() || entry.path() > result))
      result = entry.path();
  return result;
}

} // namespace

TEST_CASE("metadata_store: what is committed is found again, and a change is made as a whole") {
  temporary_directory dir;
  const auto path = dir.path() / "journal" / "store";
  for (bool on_disk : {false, true}) {
    auto store = on_disk ? opened_store(path) : metadata_store::in_memory();
    CHECK(store->waits() == on_disk);
    CHECK(store->load()->empty());
    CHECK(!store->commit(std::array{put("a", "1"), put("b", "2"), put("c", "3")}));
    CHECK(!store->commit(std::array{put("b", "4"), metadata_change{"c", std::nullopt}}));
    CHECK(*store->load() == metadata_store::entries{{"a", "1"}, {"b", "4"}});
    CHECK(!store->look_after());
  }
  CHECK(entries_in(path) == metadata_store::entries{{"a", "1"}, {"b", "4"}});
  for (auto& file : fs::directory_iterator{path})
    if (file.path().filename() != "LOCK") // which RocksDB makes beside its other files
      CHECK((file.status().permissions() & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
  for (auto& made : {path, path.parent_path()}) // the journal comes after the store
    CHECK((fs::status(made).permissions() & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
}

TEST_CASE("metadata_store: a second coordinator is refused, with the process that has the store") {
  temporary_directory dir;
  const auto first = opened_store(dir.path() / "store");
  auto second = metadata_store::open({.dir = dir.path() / "store"});
  REQUIRE(!second);
  CHECK(code_of(second.error()) == errc::in_use);
  CHECK(contains(render(second.error()), "by this process"));
}

TEST_CASE("metadata_store: cut at any byte it has all changes up to one of them") {
  temporary_directory dir;
  const auto path = dir.path() / "store", copy = dir.path() / "copy";
  {
    auto store = opened_store(path);
    for (int i = 1; i <= 4; ++i)
      REQUIRE(!store->commit(std::array{put("number", std::to_string(i)), put("twin", std::to_string(i))}));
    fs::copy(path, copy); // as it lies there when its process is killed
  }
  const auto log = log_in(copy);
  const auto size = fs::file_size(log);
  std::string bytes(size, 0);
  std::ifstream{log, std::ios::binary}.read(bytes.data(), static_cast<std::streamsize>(size));
  std::string latest = "4";
  for (auto left = size; left > 0; --left) {
    CAPTURE(left);
    const auto cut = dir.path() / "cut";
    fs::remove_all(cut);
    fs::copy(copy, cut);
    std::ofstream{cut / log.filename(), std::ios::binary | std::ios::trunc}.write(bytes.data(),
                                                                                  static_cast<std::streamsize>(left));
    const auto found = entries_in(cut);
    if (found.empty()) {
      latest.clear();
      continue;
    }
    CHECK(found.at("number") == found.at("twin"));
    CHECK(found.at("number") <= latest);
    latest = found.at("number");
  }
  CHECK(latest.empty());
}

TEST_CASE("metadata_store: one that was removed is written anew, as soon as it can be") {
  temporary_directory dir;
  const auto path = dir.path() / "store";
  auto store = opened_store(path);
  REQUIRE(!store->commit(std::array{put("a", "1"), put("b", "1")}));
  fs::remove_all(path);
  CHECK(!store->look_after());
  CHECK(*store->load() == metadata_store::entries{{"a", "1"}, {"b", "1"}});
  fs::remove_all(path);
  CHECK(!store->commit(std::array{put("a", "2")}));
  CHECK(*store->load() == metadata_store::entries{{"a", "2"}, {"b", "1"}});
  fs::remove_all(path);
  std::ofstream{path} << "a file in its place";
  const auto problem = store->look_after();
  CHECK(code_of(problem) == errc::io_error);
  CHECK(contains(render(problem), "was removed while it is in use, and is in memory only"));
  CHECK(code_of(store->commit(std::array{put("a", "3")})) == errc::io_error);
  fs::remove(path);
  CHECK(!store->commit(std::array{put("a", "4")}));
  store.reset();
  CHECK(entries_in(path) == metadata_store::entries{{"a", "4"}, {"b", "1"}});
}

TEST_CASE("metadata_store: damage is an error with what to do") {
  temporary_directory dir;
  const auto path = dir.path() / "store";
  REQUIRE(!opened_store(path)->commit(std::array{put("a", "1")}));
  fs::remove(path / "CURRENT");
  auto damaged = metadata_store::open({.dir = path});
  REQUIRE(!damaged);
  CHECK(code_of(damaged.error()) == errc::corrupt);
  CHECK(contains(render(damaged.error()), "CURRENT is missing"));
  std::ofstream{dir.path() / "file"} << "text";
  auto no_directory = metadata_store::open({.dir = dir.path() / "file"});
  REQUIRE(!no_directory);
  CHECK(code_of(no_directory.error()) == errc::io_error);
}

TEST_CASE("cluster_metadata: each start on a store is a higher incarnation of the same cluster") {
  auto store = metadata_store::in_memory();
  const auto first = start_incarnation(*store, 4711);
  REQUIRE(first);
  CHECK(first->cluster.cluster_id() == 4711);
  CHECK(first->cluster.incarnation() == 1);
  CHECK(!first->has_members());
  proto::StoredNode node;
  node.set_node_id(0x1f);
  REQUIRE(!store->commit(std::array{put(metadata_key::of(node_id{0x1f}), node.SerializeAsString())}));
  const auto second = start_incarnation(*store, 815);
  REQUIRE(second);
  CHECK(second->cluster.cluster_id() == 4711);
  CHECK(second->cluster.incarnation() == 2);
  CHECK(second->nodes.contains(node_id{0x1f}));
  CHECK(second->has_members());
}

TEST_CASE("cluster_metadata: what is not understood is refused, and says which key it is") {
  proto::StoredCluster cluster;
  cluster.set_cluster_id(1);
  const auto start = metadata_store::entries{{"cluster", cluster.SerializeAsString()}};
  const auto code_with = [&](const std::string& key, const std::string& value) {
    auto entries = start;
    entries[key] = value;
    auto found = cluster_metadata::of(entries);
    return found ? errc::ok : code_of(found.error());
  };
  CHECK(cluster_metadata::of(start));
  proto::StoredDevice device;
  device.mutable_metadata()->mutable_deviceid()->set_value(0xab);
  CHECK(code_with("device/ab", device.SerializeAsString()) == errc::ok);
  CHECK(code_with("device/ac", device.SerializeAsString()) == errc::corrupt);
  CHECK(code_with("device/ab", "\xff") == errc::corrupt);
  CHECK(code_with("communicator/1", "") == errc::corrupt);
  CHECK(code_with("cluster", "") == errc::corrupt);
  CHECK(code_with("lease/1", "") == errc::wrong_version);
  CHECK(code_of(cluster_metadata::of({{"ids", ""}}).error()) == errc::corrupt);
  cluster.set_protocol(1'000'000);
  CHECK(code_with("cluster", cluster.SerializeAsString()) == errc::wrong_version);
}
