#include "tools/planning/failures/failure_report.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// What the arguments say, or the sentence that refuses them.
struct read_failures {
  failure_options told;
  std::string problem;

  explicit read_failures(std::vector<std::string> args) {
    option_table table{"ringmaster plan"};
    told.add_to(table);
    auto wrong = table.read(args);
    if (!wrong)
      wrong = told.check();
    if (wrong) {
      CHECK(code_of(wrong) == errc::invalid_argument);
      problem = render(wrong);
    }
  }
};

} // namespace

TEST_CASE("failure options: times have units, and defaults are as the help says") {
  const read_failures all{{"--gpu-mttf",
                           "50000h",
                           "--checkpoint-write",
                           "3s",
                           "--restart",
                           "10min",
                           "--detection",
                           "1s",
                           "--repair",
                           "2d",
                           "--spares",
                           "16",
                           "--shrink",
                           "--join",
                           "500ms",
                           "--checkpoint-every",
                           "0.5h",
                           "--run",
                           "54d",
                           "--plays",
                           "10",
                           "--life-shape",
                           "0.8"}};
  CHECK(all.problem.empty());
  auto x = all.told.question({.gpus = 1024, .copies = 16, .sharded = true, .step_s = 6});
  REQUIRE(x);
  CHECK(x->gpus == 1024);
  CHECK(x->gpus_per_host == 8);
  CHECK(x->sharded);
  CHECK(x->copies == 16);
  CHECK(x->step_s == 6);
  CHECK(x->gpu_mttf_s == 1.8e8);
  CHECK(x->checkpoint_write_s == 3);
  CHECK(x->restart_s == 600);
  CHECK(x->detection_s == 1);
  CHECK(x->repair_s == 172'800);
  CHECK(x->spares == 16);
  CHECK(x->join_s == 0.5);
  CHECK(x->interval_s == 1800);
  CHECK(x->run_s == 54 * 86'400);
  CHECK(all.told.plays == 10);
  CHECK(all.told.life_shape == 0.8);
  CHECK(all.told.shrink);

  const read_failures few{{"--gpu-mttf", "1000h", "--checkpoint-write", "20s", "--restart", "1s"}};
  CHECK(few.problem.empty());
  CHECK(few.told);
  auto y = few.told.question({});
  REQUIRE(y);
  CHECK(y->join_s == 20);
  CHECK(y->detection_s == 1); // of a restart that is quicker than the default
  CHECK(y->repair_s == 86'400);
  CHECK(y->spares == 0);
  CHECK(!y->interval_s);
}

TEST_CASE("failure options: without --gpu-mttf nothing fails, and the others are refused") {
  const read_failures none{{}};
  CHECK(none.problem.empty());
  CHECK(!none.told);
  CHECK(none.told.given().empty());
  for (auto [name, value] : {std::pair{"--checkpoint-write", "30s"},
                             {"--checkpoint-every", "1h"},
                             {"--restart", "5min"},
                             {"--detection", "2s"},
                             {"--repair", "24h"},
                             {"--spares", "4"},
                             {"--join", "1s"},
                             {"--run", "54d"},
                             {"--plays", "3"},
                             {"--life-shape", "0.7"}})
    CHECK(read_failures{{name, value}}.problem
          == std::string{name} + " is of a run in which hosts fail: say how often, such as --gpu-mttf 50000h");
  CHECK(read_failures{{"--shrink"}}.problem.starts_with("--shrink is of a run in which hosts fail"));
}

TEST_CASE("failure options: what is no time, and what does not go together, is refused with what would") {
  auto why = [](std::vector<std::string> args) {
    args.insert(args.begin(), {"--gpu-mttf", "50000h"});
    return read_failures{args}.problem;
  };
  CHECK(why({"--restart", "5"}).starts_with("--restart: \"5\" is not a duration such as 500ms, 30s, 5min"));
  CHECK(why({"--repair", "0"}) == "a host's repair is 0 s: it must be more than 0, and finite");
  CHECK(why({"--restart", "1s", "--detection", "2s"})
        == "a restart of 1 s has the detection of the failure in it, which takes 2 s: it must be as long at least");
  CHECK(why({"--join", "1s"}) == "--join is of runs that shrink: give --shrink, too");
  CHECK(why({"--life-shape", "2"}) == "--life-shape is of runs that are played: say how many, such as --plays 10");
  CHECK(why({"--plays", "3", "--life-shape", "20"}) == "--life-shape: \"20\" is not a number from 0.1 to 10");
  CHECK(why({"--plays", "3", "--life-shape", "2x"}) == "--life-shape: \"2x\" is not a number from 0.1 to 10");
  CHECK(why({"--plays", "0"}).starts_with("--plays: \"0\" is not an integer from 1"));
  CHECK(why({"--checkpoint-every", "0s"})
        == "--checkpoint-every must be longer than 0; without it, it is the best interval");
  CHECK(read_failures{{"--gpu-mttf", "0h"}}.problem
        == "a GPU's mean time to failure is 0 s: it must be more than 0, and finite");
}
