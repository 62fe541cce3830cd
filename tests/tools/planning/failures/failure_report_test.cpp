#include "tools/planning/failures/failure_report.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_field.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// The published run of published_run_test.cpp.
constexpr failure_question large_run{.gpus = 16384,
                                     .copies = 128,
                                     .spares = 16,
                                     .gpu_mttf_s = 16384 * 54.0 * 86'400 / 419,
                                     .checkpoint_write_s = 30,
                                     .step_s = 6,
                                     .run_s = 54 * 86'400};

failure_findings findings(const failure_question& asked, bool shrink, uint32_t plays = 0) {
  auto result = find_failures(asked, shrink, plays, 1);
  REQUIRE(result);
  return *result;
}

} // namespace

TEST_CASE("failure report: a person reads how often it fails, when to write, and what each way to go on leaves") {
  CHECK(report_of(findings(large_run, true))
        == "Failures: of 16384 GPUs in 2048 hosts one fails every 3.09 h, 7.76 a day, 419 in 54 d\n"
           "Of checkpoints that take 30 s each, one every 13.3 min is best (Young 13.6 min, Daly 13.3 min)\n"
           "A restart takes 5 min, a repair 24 h\n"
           "\n"
           "going on by                       checkpoint effective goodput waiting smaller steps a day\n"
           "restart, always a spare             13.3 min   90.37 % 90.37 %  0.00 %  0.00 %       13013\n"
           "restart, 16 spares: wait            13.3 min   90.22 % 90.22 %  0.16 %  0.00 %       12992\n"
           "restart, 16 spares: go on smaller   13.3 min   90.36 % 90.36 %  0.00 %  0.27 %       13012\n"
           "shrink, 16 spares: no restart           none   99.68 % 99.68 %  0.00 %  0.27 %       14354\n");
}

TEST_CASE(
  "failure report: a single copy of the model cannot continue smaller, and simulated runs have their own columns") {
  auto asked = large_run;
  asked.copies = 1;
  const auto text = report_of(findings(asked, false, 3));
  CHECK(text.find("There is one copy of the model: ") != text.npos);
  CHECK(text.find("shrink") == text.npos);
  CHECK(text.find("played: goodput of the runs that were played") != text.npos);
  CHECK(text.find(" to ") != text.npos);
  CHECK(test::longest_line(text) <= 100);
  const auto narrow = report_of(findings(asked, false, 3), {.columns = 60});
  CHECK(test::longest_line(narrow) <= 60);
  CHECK(narrow.find("Not shown: ") != narrow.npos);
  CHECK(report_of(findings(asked, false, 3), {.wide = true}).find("Not shown: ") == std::string::npos);
  asked.copies = 128;
  asked.sharded = true;
  CHECK(report_of(findings(asked, true)).find("shrinking also goes back to the checkpoint") != text.npos);
}

TEST_CASE("failure report: spares that save more than they cost are named, at the number that costs least") {
  auto asked = large_run;
  asked.copies = 1;
  asked.gpus = 1024;
  asked.gpus_per_host = 8;
  asked.spares = 0;
  const auto none = findings(asked, false);
  REQUIRE(none.cheaper);
  CHECK(none.cheaper->gpu_hours < 0.99);
  auto price = [&](uint32_t spares) {
    asked.spares = spares;
    return (asked.gpus + 8.0 * spares) / findings(asked, false).best_goodput();
  };
  const auto best = none.cheaper->spares;
  CHECK(price(best) / price(0) == doctest::Approx(none.cheaper->gpu_hours));
  CHECK(price(best) < price(best - 1));
  CHECK(price(best) < price(best + 1));
  CHECK(report_of(none).find(fmt::format("(--spares {})", best)) != std::string::npos);
  asked.spares = best;
  CHECK_FALSE(findings(asked, false).cheaper);
}

TEST_CASE("failure report: a program reads the same numbers") {
  const auto found = findings(large_run, true, 2);
  const auto text = json_text(json_of(found));
  CHECK(text.starts_with(R"({"gpus":16384,"hosts":2048,"copies":128,"sharded":false,"spares":16,)"));
  CHECK(text.find(R"("recovery":"restart")") != text.npos);
  CHECK(text.find(R"("recovery":"shrink","checkpoint_interval_s":null)") != text.npos); // never
  CHECK(text.find(fmt::format("\"goodput_fraction\":{}", found.answer.outcomes[1].goodput)) != text.npos);
  CHECK(text.find(R"("played":{"effective_fraction":{"mean":)") != text.npos);
}

TEST_CASE("failure report: runs that would take too long to play are refused") {
  auto asked = large_run;
  asked.run_s = 1e10;
  auto refused = find_failures(asked, false, 1000, 1);
  REQUIRE(!refused);
  CHECK(code_of(refused.error()) == errc::invalid_argument);
  CHECK(render(refused.error()).ends_with("would take too long to play: take shorter runs, or fewer"));
}
