#include "runtime/configuration/options.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <set>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

/// The sentence that refuses the default options after `change`; empty if they are allowed.
std::string refusal(const std::function<void(options&)>& change) {
  options opts;
  change(opts);
  auto err = validate(opts);
  if (err)
    CHECK(code_of(err) == errc::invalid_config);
  return err ? render(err) : "";
}

} // namespace

TEST_CASE("options: the defaults are allowed") {
  CHECK(refusal([](options&) {}) == "");
}

TEST_CASE("options: each key appears once and has a purpose") {
  options opts;
  std::set<std::string> keys;
  std::set<const void*> values;
  for (const auto& entry : option_entries(opts)) {
    CHECK(keys.insert(std::string{entry.section} + "." + std::string{entry.key}).second);
    CHECK(std::visit([&](auto* value) { return values.insert(value).second; }, entry.value));
    CHECK(!entry.purpose.empty());
  }
  CHECK(keys.size() == 87);
}

TEST_CASE("options: a number out of range is refused at both ends, and the ends are allowed") {
  options opts;
  for (auto& entry : option_entries(opts)) {
    CAPTURE(entry.section);
    CAPTURE(entry.key);
    auto allowed_with = [&](uint64_t x) {
      auto before = opts;
      auto fits = std::visit(
        [&](auto* value) {
          using type = std::remove_pointer_t<decltype(value)>;
          if constexpr (std::is_integral_v<type> || std::is_same_v<type, options::duration>) {
            *value = static_cast<type>(x);
            return true;
          }
          return false;
        },
        entry.value);
      // The window bounds the number of late answers as well.
      if (entry.key == "late")
        opts.suspicion.window = 64;
      if (entry.key == "window")
        opts.suspicion.late = 1;
      auto good = !validate(opts);
      opts = before;
      return fits ? std::optional{good} : std::nullopt;
    };
    if (!allowed_with(1) || std::holds_alternative<bool*>(entry.value))
      continue;
    CHECK(*allowed_with(entry.min));
    CHECK(*allowed_with(entry.max));
    if (entry.min > 0)
      CHECK(!*allowed_with(entry.min - 1));
    if (entry.max != UINT64_MAX && !std::holds_alternative<uint16_t*>(entry.value))
      CHECK(!*allowed_with(entry.max + 1));
  }
}

TEST_CASE("options: a refusal names the key, the value and what is allowed") {
  CHECK(refusal([](options& x) { x.device.count = 2000; })
        == "device.count is 2000; it must be an integer from 0 to 1024");
  CHECK(refusal([](options& x) { x.suspicion.interval = 0ns; })
        == "suspicion.interval is 0s; it must be a duration from 1ms to 1min");
  CHECK(refusal([](options& x) { x.transfers.timeout = -5s; })
        == "transfers.timeout is -5s; it must be a duration from 1ms to 60min");
  CHECK(refusal([](options& x) { x.communicator.policy = "shirnk"; })
        == "communicator.policy is \"shirnk\"; it must be \"shrink\", \"replace\" or \"abort\"");
  CHECK(refusal([](options& x) { x.suspicion.late = 6; })
        == "suspicion.late is 6; it must be at most suspicion.window, which is 5");
  CHECK(refusal([](options& x) { x.transfers.slice_bytes = 1001; })
        == "transfers.slice-bytes is 1001; it must be a multiple of 8");
  CHECK(refusal([](options& x) { x.route.chunk_bytes = 100; })
        == "route.chunk-bytes is 100; it must be a multiple of 8");
  CHECK(refusal([](options& x) { x.node.join = "localhost"; })
        == "node.join is \"localhost\"; it must be \"host:port\" with a port from 1 to 65535, several of these with "
           "commas between them, or empty");
  CHECK(refusal([](options& x) { x.node.join = "one:7077,two:7077"; }) == "");
  CHECK(refusal([](options& x) { x.coordinator.store = "etcd"; })
        == "coordinator.etcd is empty; it must be a list such as [\"http://127.0.0.1:2379\"], as coordinator.store is "
           "\"etcd\"");
  CHECK(refusal([](options& x) { x.coordinator.etcd_prefix = "ringmaster"; })
        == "coordinator.etcd-prefix is \"ringmaster\"; it must be a text that ends with \"/\"");
  CHECK(refusal([](options& x) { x.coordinator.host = ""; })
        == "coordinator.host is empty; it must be an address such as \"127.0.0.1\"");
  CHECK(refusal([](options& x) { x.node.listen_host = ""; }) != "");
  for (auto name : {"two\nlines", "bell\a", "\x1b[31mred", "deleted\x7f"})
    CHECK(refusal([&](options& x) { x.node.name = name; }).starts_with("node.name is a name with control characters"));
  CHECK(refusal([](options& x) { x.node.name = "gerät-7 (oben)"; }) == "");
}

TEST_CASE("options: the devices of a cluster are read, and each id is unique") {
  CHECK(refusal([](options& x) { x.cluster.devices = {"1,localhost,7080", "2,localhost,7080"}; }) == "");
  CHECK(
    refusal([](options& x) { x.cluster.devices = {"1,localhost"}; })
    == "cluster.devices: \"1,localhost\" is no device of a cluster: that is \"id,host,port\" with an id from 1 and a "
       "port from 1 to 65535");
  CHECK(refusal([](options& x) {
          x.cluster.devices = {"1,localhost,7080", "1,localhost,7081"};
        })
        == "cluster.devices: device 1 appears twice; each id must be unique");
}

TEST_CASE("options: values are written in the syntax of the file") {
  options opts;
  opts.device.memory_dir = "/tmp/x";
  opts.cluster.devices = {"1,a,2", "2,b,3"};
  std::set<std::string> texts;
  for (const auto& entry : option_entries(opts))
    texts.insert(value_text(entry));
  for (auto text : {"8", "67108864", "\"/tmp/x\"", "5s", "100ms", "\"auto\"", "[\"1,a,2\", \"2,b,3\"]", "7077"})
    CHECK(texts.contains(text));
}
