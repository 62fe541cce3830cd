#include "gateway/http/state/event_hub.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::gateway;
using namespace std::chrono_literals;
using state = event_hub::reader::state;

namespace {

std::function<event_hub::text()> greeting(const std::string& text) {
  return [text] { return std::make_shared<const std::string>(text); };
}

std::string joined(const event_hub::reader::batch& x) {
  std::string result;
  for (auto& event : x.events)
    result += *event + " ";
  return result;
}

} // namespace

TEST_CASE("event hub: a reader gets the greeting and then each event once, in order") {
  event_hub hub{{}};
  CHECK(!hub.open()); // there is nothing to say yet
  hub.publish({}, greeting("1"));
  const auto early = hub.open();
  REQUIRE(early);
  hub.publish({"a", "b"}, greeting("2"));
  const auto late = hub.open();
  REQUIRE(late);
  hub.publish({"c"}, greeting("3"));
  CHECK(joined(early->next(0ms)) == "1 ");
  CHECK(joined(early->next(0ms)) == "a b c ");
  CHECK(joined(late->next(0ms)) == "2 ");
  CHECK(joined(late->next(0ms)) == "c ");
  const auto nothing = late->next(0ms);
  CHECK(nothing.events.empty());
  CHECK(nothing.now == state::open);
}

TEST_CASE("event hub: a reader that falls behind loses its place, and delays no other") {
  event_hub::limits most;
  most.events_max = 3;
  event_hub hub{most};
  hub.publish({}, greeting("0"));
  const auto slow = hub.open(), quick = hub.open();
  slow->next(0ms);
  quick->next(0ms);
  for (int i = 0; i < 10; ++i) {
    hub.publish({std::to_string(i)}, greeting("x"));
    CHECK(joined(quick->next(0ms)) == std::to_string(i) + " ");
  }
  CHECK(slow->next(0ms).now == state::too_slow);
  CHECK(hub.dropped() == 1);
  CHECK(quick->next(0ms).now == state::open);
}

TEST_CASE("event hub: readers have a limit, and their places are given back") {
  event_hub::limits most;
  most.readers_max = 2;
  event_hub hub{most};
  hub.publish({}, greeting("0"));
  auto one = hub.open(), two = hub.open();
  CHECK(!hub.open());
  CHECK(hub.refused() == 1);
  one.reset();
  CHECK(hub.readers() == 1);
  CHECK(hub.open() != nullptr);
}

TEST_CASE("event hub: closing it ends the readers") {
  event_hub hub{{}};
  hub.publish({}, greeting("0"));
  const auto reader = hub.open();
  reader->next(0ms);
  hub.close();
  CHECK(reader->next(1h).now == state::closed);
  CHECK(!hub.open());
}
