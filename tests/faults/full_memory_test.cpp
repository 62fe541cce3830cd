// A node whose directory of memory files is full, or gone, in a file system that the test makes for itself.
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::launch;
using namespace ringmaster::test;

namespace {

/// Runs `story`, a shell script, beside a coordinator and node "a" with four devices of 4 MiB, whose files lie in $MEM,
/// 40 MiB of memory. Nothing where the kernel does not let the test make that.
struct cramped_node {
  explicit cramped_node(const std::string& story)
    : run{{"unshare", "-rmpf", "--kill-child", "--mount-proc", "sh", "-c", std::string{before} + story + after,
           RINGMASTER_PROGRAM}} {
    if (status = run.finish(); status != 77)
      return;
    MESSAGE("skipped: this kernel lets no test mount a file system of its own: ", run.error);
  }

  bool is_skipped() const { return status == 77; }
  bool says(const std::string& text) const { return contains(run.output, text); }

  static constexpr auto before = R"(
    top=$(mktemp -d) || exit 1
    mount -t tmpfs -o size=40m none "$top" || exit 77
    cd "$top"
    MEM=$top/mem; mkdir "$MEM"
    "$0" coordinator --port 0 --port-file port 2>coordinator.log & coordinator=$!
    until [ -s port ]; do kill -0 $coordinator || exit 1; done
    export RINGMASTER_COORDINATOR=127.0.0.1:$(cat port)
    "$0" node --join $RINGMASTER_COORDINATOR --name a --devices 4 --device.memory-bytes=4M \
      --device.memory-dir="$MEM" 2>node.log & node=$!
    "$0" info --devices 4 --timeout 10s || exit 1
  )";
  static constexpr auto after = R"(
    kill $node; wait $node; echo "the node ended with $?"
    kill $coordinator; wait $coordinator; echo "the coordinator ended with $?"
    cat node.log
    cd /; umount "$top"; rmdir "$top"
  )";

  launched_program run;
  int status = 0;
};

} // namespace

TEST_CASE("full memory: devices come back when there is room again, and those that live go on meanwhile") {
  // All four have written to their memory when the disk fills up; one is killed, and what is written next is lost.
  cramped_node x{R"(
    head -c 8M /dev/zero > hog1; "$0" bench -n 1 -w 0 --samples 1 --min-bytes 512K --max-bytes 512K >/dev/null || exit 1
    head -c 100M /dev/zero > hog2 2>/dev/null
    "$0" kill 0x1
    until grep -q "cannot be started" node.log; do kill -0 $node || break; done
    "$0" bench -n 1 -w 0 --samples 1 --max-bytes 1K >/dev/null || exit 1
    "$0" info; echo "-- and with more"
    "$0" bench -n 1 -w 0 --samples 1 --min-bytes 1M --max-bytes 1M
    rm hog1 hog2
    "$0" info --devices 4 --timeout 15s && echo "all are there"
    "$0" bench -n 1 -w 0 --samples 1 --min-bytes 1M --max-bytes 1M >/dev/null && echo "all are right"
  )"};
  CAPTURE(x.run.output);
  CAPTURE(x.run.error);
  if (x.is_skipped())
    return;
  CHECK(x.status == 0);
  CHECK(x.says("3 of its 4 devices here"));
  CHECK(x.says("was cut, or its disk is full"));
  for (auto said : {"all are there", "all are right", "the node ended with 0", "the coordinator ended with 0"})
    CHECK(x.says(said));
  CHECK(x.says("No space left on device; free space there, give the devices less memory, or put their files elsewhere; "
               "the others go on. It is tried again in 500 ms"));
}

TEST_CASE("full memory: if the directory was removed, living devices go on, and new ones get another directory") {
  cramped_node x{R"(
    rm -rf "$MEM"/*
    "$0" bench -n 1 -w 0 --samples 1 --max-bytes 64K >/dev/null && echo "all four are right"
    "$0" kill 0x2; "$0" kill 0x3
    "$0" info --devices 4 --timeout 10s
    "$0" bench -n 1 -w 0 --samples 1 --max-bytes 64K >/dev/null && echo "the new ones, too"
    rm -rf "$MEM"
    "$0" kill 0x1
    until grep -q "it does not exist" node.log; do kill -0 $node || break; done
    mkdir "$MEM"
    "$0" info --devices 4 --timeout 10s && echo "all are there"
    ls "$MEM"/*
  )"};
  CAPTURE(x.run.output);
  CAPTURE(x.run.error);
  if (x.is_skipped())
    return;
  CHECK(x.status == 0);
  for (auto said : {"all four are right", "the new ones, too", "all are there", "lock", "the node ended with 0",
                    "the coordinator ended with 0"})
    CHECK(x.says(said));
  CHECK(occurrences(x.run.output, "or its lock, was removed") == 2); // once each time, for all devices
  CHECK(x.says("device.memory-dir is "));
}
