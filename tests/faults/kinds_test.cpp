// Every kind of collective by every algorithm, on real memory in a simulated cluster: right without and
// with losses.
#include "runtime/algorithms/registry.hpp"
#include "runtime/operations/waiting_ranks.hpp"
#include "runtime/schedule/request_of.hpp"
#include "tests/support/simulated_client.hpp"
#include "tests/support/simulated_cluster.hpp"
#include "tests/support/trials/collective_trial.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

simulation_options how(uint64_t seed, const collective_options& what) {
  simulation_options result;
  result.seed = seed;
  result.devices = what.ranks;
  result.devices_a_host = what.devices_a_host;
  result.journaled = true;
  result.offer_memory = seed % 4 != 0;
  result.slice_bytes = 32;
  return result;
}

/// In a cluster whose devices are numbered from 1.
plan_request request_in(const collective_options& what, uint32_t rank) {
  auto result = request_of(collective_of(what), what.ranks, rank);
  for (uint32_t device = 1; device <= what.ranks && what.devices_a_host != 0; ++device)
    result.hosts.push_back(device / what.devices_a_host);
  result.hosts = numbered_hosts(result.hosts);
  return result;
}

/// What to try of an algorithm in a world: uniform, and with a count for each rank; on one host, and on several.
std::vector<collective_options> cases_of(const algorithm& x, uint32_t ranks) {
  std::vector<collective_options> result;
  for (bool in_place : {false, true}) {
    collective_options what;
    what.kind = x.kind;
    what.algorithm = x.name;
    what.ranks = ranks;
    what.in_place = in_place;
    what.count = has_v_variant(x.kind) ? 3 : 11;
    what.chunk = 4;
    what.root = has_root(x.kind) ? (ranks - 1) / 2 : 0;
    what.peer = (what.root + 1) % ranks;
    result.push_back(what);
    if (!has_v_variant(x.kind))
      continue;
    auto matrix = x.kind == proto::ALL_TO_ALL;
    for (uint32_t a = 0; a < ranks; ++a)
      for (uint32_t b = 0; b < (matrix ? ranks : 1); ++b)
        what.counts.push_back((a + b) * 3 % 5); // alike in both directions, zeros among them
    if (plan(x.kind, x.name, request_in(what, 0)))
      result.push_back(what);
  }
  for (size_t i = 0, n = result.size(); i < n && x.is.by_hosts; ++i) {
    result.push_back(result[i]);
    result.back().devices_a_host = 3;
  }
  return result;
}

std::vector<schedule> schedules_of(const collective_options& x) {
  std::vector<schedule> result;
  for (uint32_t rank = 0; rank < x.ranks; ++rank)
    result.push_back(*plan(x.kind, x.algorithm, request_in(x, rank)));
  return result;
}

/// What all ranks do, seen from one of them: peers are counted from itself, blocks by the slices they travel in.
std::string seen_from(uint32_t self, const collective_options& x, const std::vector<schedule>& world) {
  auto from_here = [&](uint32_t rank) { return (rank + x.ranks - self) % x.ranks; };
  std::string result;
  if (has_root(x.kind))
    result = fmt::format("root {} peer {};", from_here(x.root), from_here(x.peer));
  for (uint32_t i = 0; i < x.ranks; ++i) {
    for (auto& step : world[(self + i) % x.ranks].steps)
      result += fmt::format("{} {} {} {} {} {} {} {},", static_cast<int>(step.what), step.round, from_here(step.peer),
                            static_cast<int>(step.source.where), static_cast<int>(step.destination.where),
                            (std::max(step.source.count, step.destination.count) + 3) / 4, step.finish, step.then);
    result += ';';
  }
  return result;
}

/// The ranks in groups whose deaths are alike: turning the world takes one into the other, with all that the others do.
/// A ring has one group, a tree almost one for each rank.
std::vector<std::vector<uint32_t>> alike(const collective_options& x, const std::vector<schedule>& world) {
  std::map<std::string, std::vector<uint32_t>> groups;
  for (uint32_t rank = 0; rank < x.ranks; ++rank)
    groups[seen_from(rank, x, world)].push_back(rank);
  std::vector<std::vector<uint32_t>> result;
  for (auto& [view, ranks] : groups)
    result.push_back(ranks);
  return result;
}

/// Kills `victim` when `step` rounds are done.
void kill_and_judge(const collective_options& what, uint32_t victim, uint32_t step, uint64_t seed) {
  CAPTURE(text_of(what));
  CAPTURE(victim);
  CAPTURE(step);
  CAPTURE(seed);
  simulated_cluster cluster{how(seed, what)};
  collective_trial trial{cluster, what};
  proto::FaultRequest fault;
  fault.set_at_step(true);
  fault.set_step(step);
  cluster.inject(trial.device(victim), fault);
  REQUIRE(trial.launch() == "");
  auto status = cluster.wait(trial.comm.commid());
  CHECK(trial.judge([&](uint64_t device) { return device == trial.device(victim); }) == "");
  if (status.status() == gpu_sim::SUCCESS)
    return;
  CAPTURE(status.error());
  CHECK(contains(status.error(), "was lost"));
  bool vital = has_root(what.kind) && (victim == what.root || (what.kind == proto::SEND_RECV && victim == what.peer));
  CHECK(vital);
}

} // namespace

TEST_CASE("kinds: every algorithm is right on real memory, in place and out of place, with and without counts a rank") {
  uint64_t seed = 0;
  for (auto& x : algorithms())
    for (uint32_t ranks : {1, 2, 3, 4, 7, 8})
      for (auto& what : cases_of(x, ranks)) {
        if (what.kind == proto::SEND_RECV && ranks == 1)
          continue;
        CAPTURE(text_of(what));
        simulated_cluster cluster{how(++seed, what)};
        collective_trial trial{cluster, what};
        REQUIRE(trial.launch() == "");
        auto status = cluster.wait(trial.comm.commid());
        CHECK(status.error() == "");
        CHECK(trial.judge() == "");
      }
}

// Every kind, algorithm, form of call (in place or not, with and without counts a rank), world of 2 to 6 and step. Of
// ranks whose deaths are alike one is killed at each step, another one at the next, in the next form: to the stream all
// ranks of such a group are the same, to coordinator and communicator no rank is more than its number, and each number
// dies in each algorithm. Worlds of 2 and 3 have every such death in every form; in larger ones each comes in one form,
// which alternates. Which message is first is another seed each time; faults/seeds is there for that.
TEST_CASE("kinds: for every rank that dies at any step of any algorithm, the survivors are right or know why not") {
  uint64_t seed = 0;
  for (auto& x : algorithms()) {
    std::set<std::pair<uint32_t, uint32_t>> killed; // ranks, victim
    for (uint32_t ranks = 2; ranks <= 6; ++ranks) {
      uint32_t turn = 0;
      auto forms = cases_of(x, ranks);
      for (size_t form = 0; form < forms.size(); ++form) {
        auto& what = forms[form];
        auto world = schedules_of(what);
        size_t death = form;
        for (auto& group : alike(what, world))
          for (uint32_t step = 0; step <= world[0].rounds + 1; ++step) {
            auto victim = group[turn % group.size()];
            bool its_turn = ranks <= 3 || death++ % forms.size() == 0;
            if (!its_turn && killed.count({ranks, victim}) != 0)
              continue;
            ++turn;
            killed.emplace(ranks, victim);
            kill_and_judge(what, victim, step, ++seed);
          }
      }
    }
    CAPTURE(x.name);
    CHECK(killed.size() == 2 + 3 + 4 + 5 + 6);
  }
}

TEST_CASE("kinds: if the root or the peer is lost, the operation fails on all others") {
  for (auto kind : {proto::BROADCAST, proto::SCATTER, proto::SEND_RECV}) {
    CAPTURE(name_of(kind));
    collective_options what;
    what.kind = kind;
    what.ranks = 3;
    what.root = 1;
    what.peer = 2;
    what.count = 4;
    collective_expectation expected{what};
    CHECK(expected.wrong_in({{0}, {2}}, 0, false, expected.before(0)) == "a group without the root has no result");
    if (kind == proto::SEND_RECV)
      CHECK(expected.wrong_in({{0}, {1}}, 0, false, expected.before(0)) == "a group without the peer has no result");
    CHECK(expected.wrong_in({{0}, {2}}, 0, true, expected.before(0)) == ""); // it has failed: nothing has changed
  }
}
