#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tests/tools/console/set_columns.hpp"
#include "tools/prove/prove_cases.hpp"
#include "tools/prove/prove_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

struct ending {
  int status;
  std::string out, err;
};

ending prove_with(const std::vector<std::string>& args) {
  auto end = run_command(prove_command(), args);
  return {end.code, end.out, end.err};
}

void check_refused(const std::vector<std::string>& args, std::string_view sentence) {
  auto end = prove_with(args);
  CHECK(end.status == 2);
  CHECK(end.out == "");
  CHECK(end.err == "ringmaster prove: " + std::string{sentence} + '\n');
}

} // namespace

TEST_CASE("prove command: proofs of one algorithm are counted and hold") {
  auto end = prove_with({"all_reduce", "--algorithm", "ring", "--ranks=1..4,7", "--count", "0,9", "--seed", "5"});
  CHECK(end.status == 0);
  CHECK(contains(end.out, "all_reduce      ring                 5 from 1 to 7             10"));
  CHECK(contains(end.out, "\n10 proofs, all hold ("));
  CHECK(end.err == "");
  auto one = prove_with({"all_reduce", "--algorithm", "ring", "--ranks=3", "--count", "9"});
  CHECK(contains(one.out, "\n1 proof, which holds ("));
}

TEST_CASE("prove command: a narrow terminal has no CPU time") {
  const set_columns narrow{"70"};
  auto end = prove_with({"all_reduce", "--algorithm=ring", "--ranks=3"});
  check_width(end.out, 70);
  CHECK(contains(end.out, "kind            algorithm            worlds                 cases\n"));
}

TEST_CASE("prove command: tells how far it is from within a world, and comes to the end") {
  prove_options opts;
  opts.kind = proto::ALL_REDUCE;
  opts.algorithm = "ring";
  opts.ranks = {64};
  opts.counts = {1, 2, 3, 4};
  opts.jobs = 1;
  std::vector<double> parts;
  auto rows = 0;
  prove_watch watch{[&](double part) { parts.push_back(part); }, [&](const algorithm_proofs&) { ++rows; }};
  REQUIRE(prove_algorithms(opts, watch));
  CHECK(rows == 1);
  CHECK(std::ranges::count_if(parts, [](double x) { return x > 0 && x < 1; }) >= 4); // it is one job
  CHECK(std::ranges::is_sorted(parts));
  CHECK(parts.back() == doctest::Approx(1));
}

TEST_CASE("prove command: every algorithm that there is holds and costs what it says") {
  auto end = prove_with({"--ranks", "1..6,9", "--jobs", "3"});
  CAPTURE(end.out);
  CHECK(end.status == 0);
  CHECK(contains(end.out, " proofs, all hold ("));
}

TEST_CASE("prove command: every reduction holds in rank order, and what does not reduce has none") {
  auto end = prove_with({"--deterministic", "--ranks", "1..5,11", "--jobs", "3"});
  CAPTURE(end.out);
  CHECK(end.status == 0);
  CHECK(contains(end.out, "\nreduce_scatter  halving"));
  CHECK(!contains(end.out, "broadcast"));
  CHECK(contains(end.out, " proofs, all hold ("));
  check_refused({"broadcast", "--deterministic"}, "broadcast does not reduce: there is no order to prove");
}

TEST_CASE("prove command: a file is proved in rank order, or is not") {
  temporary_directory dir;
  auto file = (dir.path() / "schedule.json").string();
  std::vector<std::string> write{"all_reduce", "--algorithm=ring", "--ranks=3", "--count=6", "--write", file};
  CHECK(prove_with(write).status == 0);
  auto plain = prove_with({"--schedule", file, "--deterministic"});
  CHECK(plain.status == 1);
  CHECK(contains(in_one_line(plain.out), "in rank order only a fold adds, and all inputs at once"));
  write.push_back("--deterministic");
  CHECK(prove_with(write).status == 0);
  auto ordered = prove_with({"--schedule", file, "--deterministic"});
  CHECK(ordered.status == 0);
  CHECK(contains(ordered.out, "rank 0: 10 elements sent"));
}

TEST_CASE("prove command: a file that was written is proved, and one with a mistake is not") {
  temporary_directory dir;
  auto file = (dir.path() / "schedule.json").string();
  CHECK(prove_with({"all_reduce", "--algorithm=ring", "--ranks=3", "--count=6", "--write", file}).out
        == "Wrote all_reduce ring, 3 ranks, count 6, to " + file + ": ringmaster prove --schedule proves it.\n");
  auto good = prove_with({"--schedule", file});
  CHECK(good.status == 0);
  CHECK(good.out.starts_with("all_reduce, 3 ranks, count 6: the proof holds\n4 rounds\nrank 0: 8 elements sent in 4 "
                             "messages, 8 received in 4\n"));
  auto spoilt = content_of(file);
  spoilt.replace(spoilt.find("[\"input\", 0, 2]"), 15, "[\"input\", 2, 2]"); // rank 0's first send
  std::ofstream{file} << spoilt;
  auto bad = prove_with({"--schedule", file, "--wide"});
  CHECK(bad.status == 1);
  CHECK(bad.out
        == "all_reduce, 3 ranks, count 6: there is a fault\nrank 1, round 0, step 1 (recv_reduce of output[0, 2) from "
           "rank 0): combines the input of rank 0 from element 2 on with the input of rank 1 from element 0 on\n");
}

TEST_CASE("prove command: a wrong command line is refused with what is allowed") {
  check_refused({"all_reduce", "broadcast"}, "one collective at a time: \"all_reduce\" and \"broadcast\" were given");
  check_refused({"all_reduce", "--algorithm", "rnig", "--ranks", "2"},
                render(find_algorithm(proto::ALL_REDUCE, "rnig").error()));
  check_refused({"--algorithm", "rnig"}, "no collective has an algorithm \"rnig\"");
  check_refused({"--ranks", "4..2"}, "--ranks: \"4..2\" is not numbers from 1 to 4096, at most 4096 of them, "
                                     "such as 3, 1..64 or 2,4,8..16");
  check_refused({"--ranks"}, "--ranks needs a value; see ringmaster prove --help");
  check_refused({"--rank", "3"}, "there is no option --rank; did you mean --ranks? Or see ringmaster prove --help");
  check_refused({"--jobs", "0"}, "--jobs: \"0\" is not an integer from 1 to 256");
  check_refused({"all_reduce", "--root", "1"},
                "--root: all_reduce has no root; reduce, broadcast, gather, scatter, send_recv have one");
  check_refused({"--schedule", "x", "--ranks", "2"},
                "--schedule FILE says itself what it is: only --seed and --deterministic go with it");
  check_refused({"all_reduce", "--write", "x"}, "--write FILE writes one: it wants a KIND, --algorithm, --ranks and "
                                                "--count with one value each");
  auto nowhere = prove_with({"--schedule", "/nowhere/x"});
  CHECK(nowhere.status == 1);
  CHECK(nowhere.err == "ringmaster prove: cannot read '/nowhere/x': No such file or directory\n");
}

TEST_CASE("prove cases: a small world has every root, uneven counts and chunks; every request makes sense") {
  prove_options opts;
  caf::error refused;
  for (auto kind : collective_kinds())
    for (auto n : prove_worlds(opts)) {
      algorithm any{};
      any.kind = kind;
      auto cases = prove_cases(any, n, opts, refused);
      CHECK(cases.empty() == (kind == proto::SEND_RECV && n == 1));
      bool uneven = false;
      std::vector<bool> roots(n), chunks(4);
      for (auto& request : cases) {
        CHECK(request.world_size == n);
        CHECK_FALSE(check_request(kind, request));
        uneven = uneven || !request.counts.empty();
        roots[request.root] = chunks[request.chunk] = true;
      }
      if (n > 1 && n <= 8) {
        CHECK(uneven == has_v_variant(kind));
        CHECK(std::count(roots.begin(), roots.end(), true) == (has_root(kind) ? n : 1));
        CHECK(chunks == std::vector<bool>{true, true, false, true});
      }
    }
}

TEST_CASE("prove cases: hierarchical algorithms are proved on even, uneven, contiguous and interleaved layouts") {
  prove_options opts;
  caf::error refused;
  algorithm by_hosts{};
  by_hosts.kind = proto::ALL_REDUCE;
  by_hosts.is.by_hosts = true;
  auto layouts = [&](uint32_t n) {
    std::set<std::vector<uint32_t>> result;
    for (auto& request : prove_cases(by_hosts, n, opts, refused)) {
      CHECK_FALSE(check_request(proto::ALL_REDUCE, request));
      result.insert(request.hosts);
    }
    return result;
  };
  CHECK(layouts(1) == std::set<std::vector<uint32_t>>{{}});
  CHECK(layouts(4)
        == std::set<std::vector<uint32_t>>{
          {}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 1, 1, 1}, {0, 1, 0, 1}, {0, 1, 2, 0}, {0, 1, 2, 3}});
  CHECK(layouts(24).size() == 8);
  CHECK(layouts(25).size() == 1);
  opts.hosts = {5, 2};
  CHECK(layouts(7) == std::set<std::vector<uint32_t>>{{0, 0, 0, 0, 0, 1, 1}});
  CHECK(layouts(8).empty());
  CHECK(render(refused) == "--hosts: the hosts have 7 ranks together, and there are 8");
}

TEST_CASE("prove: hierarchical algorithms on a given layout") {
  auto proved = prove_with({"all_to_all", "--algorithm", "hierarchical", "--ranks", "6", "--hosts", "3,1,2"});
  CHECK(proved.status == 0);
  CHECK(proved.out.find("all hold") != std::string::npos);
  check_refused({"all_reduce", "--algorithm", "hierarchical", "--ranks", "5", "--hosts", "2"},
                "--hosts: 5 ranks cannot fill 2 hosts evenly; give the ranks of each host, such as 3,2");
  check_refused({"--hosts", "2,x"},
                "--hosts: \"2,x\" is neither a number of hosts, such as 4, nor the ranks of each, such as 4,4,2");
}
