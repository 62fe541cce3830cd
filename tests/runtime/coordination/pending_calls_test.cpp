#include "runtime/coordination/pending_calls.hpp"

#include "messages/errc.hpp"
#include "messages/ids.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

pending_calls<device_id>::time_point behind(int seconds) {
  return pending_calls<device_id>::time_point{} + std::chrono::seconds{seconds};
}

} // namespace

TEST_CASE("pending_calls: each is answered once, by its receiver or for it") {
  pending_calls<device_id> calls;
  std::vector<std::string> told;
  auto begin = [&](uint64_t device, const char* who) {
    return calls.begun(device_id{device}, behind(10),
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

TEST_CASE("pending_calls: one that hears of an end may call again") {
  pending_calls<device_id> calls;
  int told = 0;
  calls.begun(device_id{1}, behind(10), [&](const caf::error&) {
    ++told;
    calls.begun(device_id{1}, behind(10), [&](const caf::error&) { ++told; });
  });
  calls.gone(device_id{1}, make_error(errc::device_lost, "it died"));
  CHECK(told == 1);
  CHECK(calls.size() == 1);
}

TEST_CASE("pending_calls: of calls that are late together the first may end the receiver, and so the others") {
  pending_calls<device_id> calls;
  std::vector<std::string> told;
  calls.begun(device_id{1}, behind(10), [&](const caf::error& why) {
    told.push_back("first: " + render(why));
    calls.gone(device_id{1}, make_error(errc::device_lost, "it was ended"));
  });
  calls.begun(device_id{1}, behind(10), [&](const caf::error& why) { told.push_back("second: " + render(why)); });
  calls.expire(behind(10), make_error(errc::timed_out, "late"));
  CHECK(told == std::vector<std::string>{"first: late", "second: it was ended"});
  CHECK(calls.size() == 0);
}

TEST_CASE("pending_calls: one that is late is answered for, once, and one timer serves all") {
  pending_calls<device_id> calls;
  std::vector<std::string> told;
  auto begin = [&](int due, const char* who) {
    return calls.begun(device_id{1}, behind(due),
                       [&told, who](const caf::error& why) { told.push_back(who + (": " + render(why))); });
  };
  const auto late = make_error(errc::timed_out, "late");
  auto first = begin(10, "first");
  CHECK(calls.timer() == behind(10));
  auto second = begin(12, "second");
  auto third = begin(13, "third");
  CHECK(calls.timer() == std::nullopt); // the one that is set will do
  CHECK(calls.ended(second));
  calls.expire(behind(11), late);
  CHECK(told == std::vector<std::string>{"first: late"});
  CHECK_FALSE(calls.ended(first)); // its answer comes too late
  CHECK(calls.timer() == behind(13));
  calls.gone(device_id{1}, make_error(errc::device_lost, "it died"));
  calls.expire(behind(14), late);
  CHECK(told == std::vector<std::string>{"first: late", "third: it died"});
  CHECK_FALSE(calls.ended(third));
  CHECK(calls.timer() == std::nullopt);
}

TEST_CASE("pending_calls: those of each peer are counted until they are answered, late or lost") {
  pending_calls<device_id, std::string> calls;
  auto begin = [&](uint64_t device, int limit, const char* peer) {
    return calls.begun(
      device_id{device}, behind(limit), [](const caf::error&) {}, peer);
  };
  auto first = begin(1, 10, "a");
  begin(1, 20, "a");
  begin(2, 5, "a");
  begin(2, 30, "b");
  CHECK(calls.count_of("a") == 3);
  CHECK(calls.count_of("b") == 1);
  CHECK(calls.ended(first));
  CHECK(calls.count_of("a") == 2);
  calls.expire(behind(6), make_error(errc::timed_out, "late"));
  CHECK(calls.count_of("a") == 1);
  calls.gone(device_id{1}, make_error(errc::device_lost, "it died"));
  CHECK(calls.count_of("a") == 0);
  CHECK(calls.count_of("b") == 1);
}
