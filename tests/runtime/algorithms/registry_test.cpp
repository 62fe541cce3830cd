#include "runtime/algorithms/registry.hpp"
#include "tests/support/schedule_interpreter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// A rank's contribution, or a sum as it was added up: "((a b) c)".
using term = std::string;

term pair_of(const term& a, const term& b) {
  return "(" + a + " " + b + ")";
}

/// Which of two operands is the first does not matter, as of numbers.
term commuting(const term& a, const term& b) {
  return a.size() > b.size() || (a.size() == b.size() && a < b) ? pair_of(a, b) : pair_of(b, a);
}

/// What the ranks have in the end where every element of rank r's input is its letter.
std::vector<rank_memory<term>> added_up(const algorithm& which, const plan_request& request) {
  auto schedules = plan_all(which.kind, which.name, request);
  REQUIRE_MESSAGE(schedules.engaged(), render(schedules.error()));
  std::vector<rank_memory<term>> memory(request.world_size);
  const auto counts = buffer_counts_of(which.kind, request);
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    memory[rank].input.assign(counts[rank].input, term(1, static_cast<char>('a' + rank)));
  auto walked = interpret_on(memory, *schedules, counts, 1, commuting, [](const term& x) { return x; });
  REQUIRE_MESSAGE(!walked.fault, render(walked.fault));
  return memory;
}

term in_rank_order(uint32_t ranks) {
  term result = "a";
  for (uint32_t rank = 1; rank < ranks; ++rank)
    result = pair_of(result, term(1, static_cast<char>('a' + rank)));
  return result;
}

bool is_same_on_every_place(const algorithm& which, const plan_request& request) {
  for (auto& rank : added_up(which, request))
    if (std::set<term>(rank.output.begin(), rank.output.end()).size() > 1)
      return false;
  return true;
}

} // namespace

TEST_CASE("registry: only algorithms with chunks depend on the chunk") {
  for (auto& which : algorithms()) {
    CAPTURE(which.name);
    plan_request request{.world_size = 4, .count = 64, .peer = 1, .hosts = {0, 0, 1, 1}};
    auto as_it_likes = plan_all(which.kind, which.name, request);
    request.chunk = 1;
    CHECK((*plan_all(which.kind, which.name, request) != *as_it_likes) == which.is.in_chunks);
  }
}

TEST_CASE("registry: only algorithms with hosts depend on the hosts") {
  for (auto& which : algorithms()) {
    CAPTURE(which.name);
    plan_request request{.world_size = 4, .count = 64, .peer = 1};
    auto on_one = plan_all(which.kind, which.name, request);
    request.hosts = {0, 0, 1, 1};
    CHECK((*plan_all(which.kind, which.name, request) != *on_one) == which.is.by_hosts);
  }
}

TEST_CASE("registry: the course's own call is one algorithm") {
  CHECK(std::ranges::count_if(algorithms(), [](auto& x) { return x.is.course_call; }) == 1);
  CHECK(course_algorithm().kind == proto::ALL_REDUCE);
}

TEST_CASE("registry: what is the same anywhere adds every element of a block up in one order, and nothing else does") {
  for (auto& which : algorithms()) {
    if (!reduces(which.kind))
      continue;
    CAPTURE(name_of(which.kind));
    CAPTURE(which.name);
    bool same = true;
    for (uint32_t ranks = 2; ranks <= 17; ++ranks)
      for (uint64_t chunk : {0, 5})
        for (bool on_hosts : {false, true}) {
          plan_request request{.world_size = ranks, .count = 37, .root = ranks / 2, .chunk = chunk};
          for (uint32_t rank = 0; on_hosts && rank < ranks; ++rank)
            request.hosts.push_back(rank / 3);
          same = same && is_same_on_every_place(which, request);
        }
    CHECK(same == which.is.same_anywhere);
  }
}

TEST_CASE("registry: what is in rank order adds as a plain loop does, and every reduction has one") {
  for (auto kind : collective_kinds()) {
    CAPTURE(name_of(kind));
    const auto* which = first_in_rank_order(kind);
    CHECK((which != nullptr) == reduces(kind));
    if (which == nullptr)
      continue;
    for (uint32_t ranks = 2; ranks <= 9; ++ranks)
      for (auto& rank : added_up(*which, {.world_size = ranks, .count = 37, .root = ranks / 2}))
        for (auto& element : rank.output)
          if (!element.empty()) // a rank that gets no result has none
            CHECK(element == in_rank_order(ranks));
  }
}

TEST_CASE("registry: every kind has an algorithm that is served together, and it is asked for by kind and name") {
  for (auto kind : collective_kinds()) {
    CAPTURE(name_of(kind));
    REQUIRE(first_shared_memory(kind) != nullptr);
    CHECK(is_shared_memory(kind, first_shared_memory(kind)->name));
    CHECK(!is_shared_memory(kind, "nothing"));
  }
  CHECK(is_shared_memory(proto::ALL_REDUCE, "one_shot"));
  CHECK(!is_shared_memory(proto::REDUCE, "one_shot")); // which it does not have
  CHECK(!is_shared_memory(proto::ALL_REDUCE, "ring"));
}
