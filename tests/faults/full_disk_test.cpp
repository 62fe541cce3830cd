// A training whose disk has little room, in a file system that the test makes for itself.
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::launch;
using namespace ringmaster::test;

TEST_CASE("full disk: where two checkpoints have room, and three have none, the older ones go") {
  constexpr auto story = R"(
    top=$(mktemp -d) || exit 1
    mount -t tmpfs -o size=3m none "$top" || exit 77
    cd "$top"
    "$0" train --samples 2000 --epochs 5 --checkpoint kept || exit 1
    ls kept
    rm kept/step-000124.safetensors; head -c 100M /dev/zero > hog 2>/dev/null
    "$0" train --samples 2000 --epochs 7 --checkpoint kept --resume
    echo "status $?"
    ls kept
    cd /; umount "$top"; rmdir "$top"
  )";
  launched_program run{{"unshare", "-rm", "sh", "-c", story, RINGMASTER_PROGRAM}};
  const auto status = run.finish();
  CAPTURE(run.output);
  CAPTURE(run.error);
  if (status == 77) {
    MESSAGE("skipped: this kernel lets no test mount a file system of its own: ", run.error);
    return;
  }
  CHECK(status == 0);
  CHECK(contains(run.output, "step-000155.safetensors")); // of five epochs, each of 31 steps
  CHECK(!contains(run.output, "step-000031.safetensors"));
  // With no room at all the newest stays.
  CHECK(contains(run.output, "status 1"));
  CHECK(run.output.rfind("step-000155.safetensors") > run.output.find("status 1"));
  CHECK(contains(run.error, "the trained model is in no checkpoint: "));
}
