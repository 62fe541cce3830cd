#include "tests/support/processes/launched_program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

using namespace ringmaster;

namespace {

using word_list = std::vector<std::string>;

/// What bash offers behind these words, of which the last one may be begun; in order. `quoted` is how bash divides
/// them, `before` what the shell has done.
word_list offered(const std::string& program, const std::string& script, const std::string& quoted,
                  const std::string& before = {}) {
  launch::launched_program bash{
    {"bash", "--norc", "-c",
     "set -u; " + before + "source <(\"$0\" " + script + "); COMP_WORDS=(" + quoted
       + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); function=$(complete -p " + quoted.substr(0, quoted.find(' '))
       + "); function=${function#*-F }; ${function%% *} && printf '%s\\n' \"${COMPREPLY[@]}\"",
     program}};
  CHECK(bash.finish() == 0);
  CHECK(bash.error == "");
  word_list result;
  std::istringstream lines{bash.output};
  for (std::string line; std::getline(lines, line);)
    result.push_back(line);
  std::sort(result.begin(), result.end());
  return result;
}

word_list ringmaster_offers(const std::string& quoted) {
  return offered(RINGMASTER_PROGRAM, "completion bash", "ringmaster " + quoted);
}

word_list caf_run_offers(const std::string& quoted) {
  return offered(RINGMASTER_CAF_RUN, "--completion", "caf-run " + quoted);
}

bool offers(const word_list& all, const std::string& word) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

} // namespace

TEST_CASE("bash completion: commands, and those below one") {
  CHECK(ringmaster_offers("pr") == word_list{"prove"});
  auto all = ringmaster_offers("''");
  CHECK(offers(all, "bench"));
  CHECK(offers(all, "help"));
  CHECK(ringmaster_offers("help pu") == word_list{"puzzles"});
  CHECK(ringmaster_offers("simulate tr") == word_list{"train"});
  CHECK(offers(ringmaster_offers("simulate ''"), "all_reduce"));
}

TEST_CASE("bash completion: the options of the command that is there") {
  CHECK(ringmaster_offers("prove --de") == word_list{"--deterministic"});
  CHECK(ringmaster_offers("simulate train --stra") == word_list{"--strategy"});
  CHECK(!offers(ringmaster_offers("simulate --"), "--strategy"));
  CHECK(ringmaster_offers("bench --device.c") == word_list{"--device.count="});
  CHECK(caf_run_offers("--devices") == word_list{"--devices-per-node"});
  CHECK(caf_run_offers("--device.c") == word_list{"--device.count="});
}

TEST_CASE("bash completion: what an option's value may be, also behind an equals sign") {
  CHECK(ringmaster_offers("bench --datatype flo")
        == word_list{"float16", "float32", "float64", "float8_e4m3", "float8_e5m2"});
  CHECK(ringmaster_offers("bench all_reduce -d bf") == word_list{"bfloat16"});
  CHECK(ringmaster_offers("simulate train --strategy = 1f") == word_list{"1f1b"});
  CHECK(ringmaster_offers("explain --transport =") == word_list{"network", "process"});
  CHECK(ringmaster_offers("bench all_r") == word_list{"all_reduce"});
  CHECK(ringmaster_offers("bench --devices 1") == word_list{""}); // a number: nothing to offer
  CHECK(offers(ringmaster_offers("log /"), "/usr"));
  CHECK(offers(ringmaster_offers("chart /usr/b"), "/usr/bin"));
}

TEST_CASE("bash completion: algorithms are those of the kind that stands there, and what a command has beside them") {
  CHECK(ringmaster_offers("bench all_gather --algorithm ''")
        == word_list{"all", "auto", "bruck", "butterfly", "direct", "hierarchical", "naive", "ring"});
  CHECK(ringmaster_offers("bench gather --algorithm = a") == word_list{"all", "auto"});
  CHECK(offers(ringmaster_offers("bench --algorithm ''"), "scatter_all_gather"));
  CHECK(ringmaster_offers("draw gather --algorithm ''") == word_list{"direct", "naive", "tree"});
  CHECK(ringmaster_offers("completion ''") == word_list{"bash"});
  CHECK(caf_run_offers("--comp") == word_list{"--completion"});
}

TEST_CASE("bash completion: behind caf-run's program its own words are left alone") {
  CHECK(caf_run_offers("--local 4 --po") == word_list{"--port"});
  CHECK(offers(caf_run_offers("--local 4 ca"), "cat"));
  CHECK(caf_run_offers("--local 4 -- ringmaster --po") != word_list{"--port"});
  CHECK(caf_run_offers("--local = 4 prog --po") != word_list{"--port"});
  auto commands = caf_run_offers("--local 2 -- l");
  CHECK(offers(commands, "ls"));
  CHECK(std::adjacent_find(commands.begin(), commands.end()) == commands.end()); // sorted: each once
  CHECK(offers(caf_run_offers("--local 2 -- ls /usr/b"), "/usr/bin"));           // no command, where an argument stands
  CHECK(!offers(caf_run_offers("--local 2 -- ls l"), "ls"));
}

TEST_CASE("bash completion: where bash-completion is there, caf-run's program completes its own words") {
  for (auto [words, rest] : {std::pair{"--local 2 -- ringmaster be", "4"},
                             {"--local 2 ringmaster be", "3"},
                             {"--local = 2 -- ringmaster be", "5"},
                             {"--local 2 -- ring", "4"}})
    CHECK(offered(RINGMASTER_CAF_RUN, "--completion", std::string{"caf-run "} + words,
                  "_command_offset() { COMPREPLY=(\"from $1\"); }; ")
          == word_list{std::string{"from "} + rest});
}

TEST_CASE("bash completion: of a list the last word, and a file's name where one has begun") {
  CHECK(ringmaster_offers("bench --datatype int32,bf") == word_list{"int32,bfloat16"});
  CHECK(ringmaster_offers("bench --datatype = int32,int8,uint6") == word_list{"int32,int8,uint64"});
  CHECK(offers(ringmaster_offers("plan --model /usr/b"), "/usr/bin"));
  CHECK(!offers(ringmaster_offers("plan --model u"), "/usr"));
}
