#include "tools/launch/node_losses.hpp"

#include "tests/support/processes/watched_children.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ringmaster::launch;

namespace {

/// A coordinator's `ringmaster absent`, which does as a script does.
struct fake_coordinator {
  explicit fake_coordinator(const std::string& script) {
    line.binary = children.scripts.write("ringmaster", "#!/bin/sh\necho $* >> $(dirname $0)/told\n" + script);
  }

  bool look_until(const std::function<bool()>& done) {
    return children.wait_until([&] {
      notice.look("127.0.0.1:7");
      return done();
    });
  }
  std::string told() const { return children.scripts.read("told"); }

  watched_children children;
  command_line line;
  absence_notice notice{children.watch(), line};
};

} // namespace

TEST_CASE("absence_notice: ranks that exit shortly after each other are reported together, a moment later") {
  fake_coordinator x{""};
  x.notice.add({"1:was killed"});
  x.notice.look("127.0.0.1:7");
  CHECK(x.told().empty());
  x.notice.add({"2:exited"});
  REQUIRE(x.look_until([&] { return !x.told().empty(); }));
  CHECK(x.told() == "absent --join 127.0.0.1:7 --timeout 3s 1:was killed 2:exited\n");
  REQUIRE(x.look_until([&] { return x.notice.due() == process_watch::clock::time_point::max(); }));
  CHECK(x.children.said().empty());
}

TEST_CASE("absence_notice: a failed report names the rank and the consequence") {
  for (int others : {0, 2}) {
    fake_coordinator x{"echo 'no answer from 127.0.0.1:7' >&2; exit 1"};
    x.notice.add({"1"});
    if (others > 0)
      x.notice.add({"2", "3"});
    REQUIRE(x.look_until([&] { return !x.children.said().empty(); }));
    CHECK(x.children.said()
          == (others == 0 ? "caf-run: the coordinator could not be notified that the process of rank 1 has exited, so "
                            "others may wait for it: "
                          : "caf-run: the coordinator could not be notified that the processes of rank 1 and 2 others "
                            "have exited, so others "
                            "may wait for them: ")
               + std::string{"ringmaster absent exited with status 1: no answer from 127.0.0.1:7\n"});
  }
}

TEST_CASE("absence_notice: of very many ranks some go first, and none is left out") {
  fake_coordinator x{""};
  std::vector<std::string> ranks(600);
  for (size_t i = 0; i < ranks.size(); ++i)
    ranks[i] = std::to_string(1000 + i);
  x.notice.add(ranks);
  REQUIRE(x.look_until([&] { return x.told().find("1599") != std::string::npos; }));
  const auto told = x.told();
  CHECK(std::ranges::count(told, '\n') == 3);
  CHECK(std::ranges::all_of(ranks, [&](auto& each) { return told.find(each) != std::string::npos; }));
}

TEST_CASE("absence_notice: once stopped, nothing is reported and nothing is due") {
  fake_coordinator x{"exec sleep 60"};
  x.notice.add({"1"});
  REQUIRE(x.look_until([&] { return !x.told().empty(); }));
  x.notice.add({"2"});
  x.notice.stop();
  CHECK(x.notice.due() == process_watch::clock::time_point::max());
  x.notice.look("127.0.0.1:7");
  CHECK(x.told().find(" 2") == std::string::npos);
  CHECK(x.children.said().empty());
}
