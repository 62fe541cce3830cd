#include "tests/support/launched_program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

using namespace ringmaster;

namespace {

using words = std::vector<std::string>;

/// What bash offers behind these words, of which the last one may be begun; in order. `quoted` is how bash divides
/// them.
words offered(const std::string& program, const std::string& script, const std::string& quoted) {
  launch::launched_program bash{
    {"bash", "--norc", "-c",
     "set -u; source <(\"$0\" " + script + "); COMP_WORDS=(" + quoted
       + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); function=$(complete -p " + quoted.substr(0, quoted.find(' '))
       + "); function=${function#*-F }; ${function%% *} && printf '%s\\n' \"${COMPREPLY[@]}\"",
     program}};
  CHECK(bash.finish() == 0);
  CHECK(bash.error == "");
  words result;
  std::istringstream lines{bash.output};
  for (std::string line; std::getline(lines, line);)
    result.push_back(line);
  std::sort(result.begin(), result.end());
  return result;
}

words ringmaster_offers(const std::string& quoted) {
  return offered(RINGMASTER_PROGRAM, "completion bash", "ringmaster " + quoted);
}

words caf_run_offers(const std::string& quoted) {
  return offered(RINGMASTER_CAF_RUN, "--completion", "caf-run " + quoted);
}

bool has(const words& all, const std::string& word) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

} // namespace

TEST_CASE("bash completion: commands, and those below one") {
  CHECK(ringmaster_offers("pr") == words{"prove"});
  auto all = ringmaster_offers("''");
  CHECK(has(all, "bench"));
  CHECK(has(all, "help"));
  CHECK(ringmaster_offers("help pu") == words{"puzzles"});
  CHECK(ringmaster_offers("simulate tr") == words{"train"});
  CHECK(has(ringmaster_offers("simulate ''"), "all_reduce"));
}

TEST_CASE("bash completion: the options of the command that is there") {
  CHECK(ringmaster_offers("prove --de") == words{"--deterministic"});
  CHECK(ringmaster_offers("simulate train --stra") == words{"--strategy"});
  CHECK(!has(ringmaster_offers("simulate --"), "--strategy"));
  CHECK(ringmaster_offers("bench --device.c") == words{"--device.count="});
  CHECK(caf_run_offers("--dev") == words{"--devices-per-node"});
}

TEST_CASE("bash completion: what an option's value may be, also behind an equals sign") {
  CHECK(ringmaster_offers("bench --datatype flo")
        == words{"float16", "float32", "float64", "float8_e4m3", "float8_e5m2"});
  CHECK(ringmaster_offers("bench all_reduce -d bf") == words{"bfloat16"});
  CHECK(ringmaster_offers("simulate train --strategy = 1f") == words{"1f1b"});
  CHECK(ringmaster_offers("explain --transport =") == words{"network", "process"});
  CHECK(ringmaster_offers("bench all_r") == words{"all_reduce"});
  CHECK(ringmaster_offers("bench --devices 1") == words{""}); // a number: nothing to offer
  CHECK(has(ringmaster_offers("log /"), "/usr"));
  CHECK(has(ringmaster_offers("chart /usr/b"), "/usr/bin"));
}

TEST_CASE("bash completion: algorithms are those of the kind that stands there, and what a command has beside them") {
  CHECK(ringmaster_offers("bench all_gather --algorithm ''")
        == words{"all", "auto", "bruck", "butterfly", "direct", "naive", "ring"});
  CHECK(ringmaster_offers("bench gather --algorithm = a") == words{"all", "auto"});
  CHECK(has(ringmaster_offers("bench --algorithm ''"), "scatter_all_gather"));
  CHECK(ringmaster_offers("draw gather --algorithm ''") == words{"direct", "naive", "tree"});
  CHECK(ringmaster_offers("completion ''") == words{"bash"});
  CHECK(ringmaster_offers("help ma") == words{"man"});
  CHECK(caf_run_offers("--comp") == words{"--completion"});
}

TEST_CASE("bash completion: behind caf-run's program its own words are left alone") {
  CHECK(caf_run_offers("--local 4 --po") == words{"--port"});
  CHECK(has(caf_run_offers("--local 4 ca"), "cat"));
  CHECK(caf_run_offers("--local 4 -- ringmaster --po") != words{"--port"});
  CHECK(caf_run_offers("--local = 4 prog --po") != words{"--port"});
}
