// What is refused of files with plans.
#include "tools/planning/plan_compare.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

const std::string plan_file = R"({"model": "small", "system": "h100-80g", "precision": "bf16", "gpus": 16,
  "global_batch": 32, "sequence": 4096, "best": [{"tensor": 2, "context": 1, "data": 4, "expert": 1, "pipeline": 2,
  "micro_batch": 1, "chunks": 3, "schedule": "interleaved", "recompute": "full",
  "time_s": 1.5, "sequence_parallel": true, "sharding": "zero1", "tokens_per_s": 1000, "memory_bytes": 40,
  "seconds": {"compute": 1.25, "bubble": 0.25, "experts": 0}, "bytes": {"weights": 30, "logits": 10},
  "simulated_time_s": 1.6, "simulated_memory_bytes": 41}]})";

std::string refusal_with(std::string_view old_part, std::string_view new_part) {
  auto text = plan_file;
  const auto at = text.find(old_part);
  REQUIRE(at != text.npos);
  text.replace(at, old_part.size(), new_part);
  auto x = parse_saved_plan(text);
  REQUIRE(!x.engaged());
  return render(x.error());
}

} // namespace

TEST_CASE("saved plan: is read with all that plans can differ in") {
  auto x = parse_saved_plan(plan_file);
  REQUIRE_MESSAGE(x.engaged(), render(x.error()));
  CHECK(x->title
        == "small on 16 x h100-80g in bf16, batch 32 of 4096: TP2 CP1 DP4 EP1 PP2, micro-batch 1, interleaved, VPP3, "
           "recompute "
           "full, sequence parallel, zero1");
  CHECK(x->seconds == 1.5);
  CHECK(x->simulated_seconds == 1.6);
  CHECK(x->bytes_by_part == training::named_parts{{"weights", 30}, {"logits", 10}});
  auto text = plan_file;
  text.replace(text.find("1.6"), 3, "null");
  CHECK(!parse_saved_plan(text)->simulated_seconds);
}

TEST_CASE("saved plan: what no plan has is refused with the place, the member and what stands there") {
  CHECK(refusal_with(R"("time_s": 1.5)", R"("time_s": -1.5)")
        == "plan, \"best\", entry 0, \"time_s\": must be a number from 0 to 1e+12, and is -1.5");
  CHECK(refusal_with(R"("time_s": 1.5)", R"("time_s": "soon")").ends_with("and is \"soon\""));
  CHECK(refusal_with(R"("time_s": 1.5)", R"("time_s": null)").ends_with("and is null"));
  CHECK(refusal_with(R"("time_s": 1.5)", R"("time_s": 1e300)").ends_with("and is 1e+300"));
  CHECK(refusal_with(R"("time_s": 1.5)", R"("time_s": 0)").ends_with("must be a number above 0, and is 0"));
  CHECK(
    refusal_with(R"("time_s": 1.5, )", "").ends_with("\"time_s\": must be a number from 0 to 1e+12, and is missing"));
  CHECK(refusal_with(R"("gpus": 16)", R"("gpus": "many")")
        == "plan, \"gpus\": must be a whole number from 0 to 4294967295, and is \"many\"");
  CHECK(refusal_with(R"("gpus": 16)", R"("gpus": 0)").ends_with("must be a whole number from 1 on, and is 0"));
  CHECK(refusal_with(R"("model": "small")", R"("model": ["small"])")
          .ends_with("must be a text in quotes, and is [\"small\"]"));
  CHECK(refusal_with("small", "\\u001b[31m")
          .ends_with("\"model\": must be a text without control characters, and is \"\\u001b[31m\""));
  CHECK(refusal_with(R"("bubble")", R"("\u001b")").ends_with("a part's name has no control characters"));
  CHECK(refusal_with(R"("experts": 0)", R"("experts": -1)").ends_with("must be a number from 0 to 1.5, and is -1"));
  CHECK(refusal_with(R"("compute": 1.25)", R"("compute": 1)")
          .ends_with("the parts are 1.25 in all, and \"time_s\" is 1.5"));
  CHECK(
    refusal_with(R"("logits": 10)", R"("logits": 9)").ends_with("the parts are 39 in all, and \"memory_bytes\" is 40"));
  CHECK(refusal_with(R"("simulated_time_s": 1.6)", R"("simulated_time_s": "?")").ends_with("and is \"?\""));
}

TEST_CASE("saved plan: what is no plan of a transformer that fits is called so") {
  CHECK(render(parse_saved_plan("[]").error()) == "this is not what ringmaster plan --json writes");
  CHECK(render(parse_saved_plan(R"({"gpus": 8, "best": []})").error())
        == "there is no plan of a transformer that fits");
  CHECK(render(parse_saved_plan(R"({"gpus": 8, "best": [{"time_s": 1}]})").error())
          .ends_with("there is no plan of a transformer that fits"));
}
