#include "runtime/coordination/pending_calls.hpp"

#include "messages/errc.hpp"
#include "messages/ids.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("pending_calls: each is answered once, by its receiver or for it") {
  pending_calls<device_id> calls;
  std::vector<std::string> told;
  auto begin = [&](uint64_t device, const char* who) {
    return calls.begun(device_id{device},
                       [&told, who](const caf::error& why) { told.push_back(who + (": " + render(why))); });
  };
  auto answered = begin(1, "first");
  auto pending = begin(1, "second");
  auto other = begin(2, "third");
  CHECK(calls.ended(answered));
  CHECK_FALSE(calls.ended(answered)); // its limit comes too late
  calls.gone(device_id{1}, make_error(errc::device_lost, "it died"));
  CHECK(told == std::vector<std::string>{"second: it died"});
  CHECK_FALSE(calls.ended(pending)); // and so does the answer
  CHECK(calls.size() == 1);
  CHECK(calls.ended(other));
}

TEST_CASE("pending_calls: whoever hears of an end may call again") {
  pending_calls<device_id> calls;
  int told = 0;
  calls.begun(device_id{1}, [&](const caf::error&) {
    ++told;
    calls.begun(device_id{1}, [&](const caf::error&) { ++told; });
  });
  calls.gone(device_id{1}, make_error(errc::device_lost, "it died"));
  CHECK(told == 1);
  CHECK(calls.size() == 1);
}
