#include "runtime/algorithms/registry.hpp"
#include "runtime/simulation/simulation.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/simulation/simulation_trace.hpp"
#include "tests/runtime/simulation/microsecond.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint64_t element_bytes = 4;
constexpr picoseconds ps_per_byte = 20; // 50 GB/s

network uniform(picoseconds latency = 5 * us) {
  return {.link = {latency, 50e9}};
}

schedule_source planner(proto::CollectiveKind kind, std::string_view name, plan_request request) {
  return [=](uint32_t rank) mutable {
    request.rank = rank;
    return plan(kind, name, request);
  };
}

simulation run(const algorithm& which, const plan_request& request, const network& net) {
  auto result = simulate(request.world_size, planner(which.kind, which.name, request), net, element_bytes);
  REQUIRE_MESSAGE(result, (result ? "" : render(result.error())));
  REQUIRE(result->stuck == "");
  return std::move(*result);
}

simulation run_all_reduce(std::string_view name, uint32_t world_size, uint64_t count, const network& net) {
  return run(**find_algorithm(proto::ALL_REDUCE, name), {.world_size = world_size, .count = count}, net);
}

step send_to(uint32_t peer, uint64_t count, uint32_t round = 0) {
  return {.what = action::send, .round = round, .peer = peer, .source = {buffer::input, 0, count}};
}

step recv_from(uint32_t peer, uint64_t count, uint32_t round = 0, uint64_t offset = 0) {
  return {.what = action::recv, .round = round, .peer = peer, .destination = {buffer::output, offset, count}};
}

step reduce_from(uint32_t peer, uint64_t count, uint64_t offset = 0) {
  return {.what = action::recv_reduce,
          .peer = peer,
          .source = {buffer::input, offset, count},
          .destination = {buffer::output, offset, count}};
}

simulation run(const std::vector<schedule>& ranks, const network& net, const simulation_observer& observer = {}) {
  auto result = simulate(ranks, net, element_bytes, observer);
  REQUIRE_MESSAGE(result, (result ? "" : render(result.error())));
  return std::move(*result);
}

picoseconds length(const std::vector<path_part>& path) {
  auto sum = summary_of(path);
  return sum.transfer + sum.latency + sum.work;
}

} // namespace

TEST_CASE("simulation: on a uniform network every algorithm takes the time of its cost, exactly for equal blocks") {
  for (const auto& which : algorithms())
    for (uint32_t world_size : {2, 3, 4, 5, 7, 8, 12, 16, 17})
      for (uint64_t scale : {1, 7}) {
        plan_request request{.world_size = world_size, .count = scale * world_size * 240}; // divides by most numbers
        if (which.kind == proto::SEND_RECV)
          request.peer = world_size - 1;
        CAPTURE(name_of(which.kind));
        CAPTURE(which.name);
        CAPTURE(world_size);
        CAPTURE(request.count);
        auto cost = cost_of(which.kind, which.name, request);
        REQUIRE(cost);
        auto result = run(which, request, uniform());
        auto expected = static_cast<picoseconds>(cost->latencies) * 5 * us
                        + static_cast<picoseconds>(cost->serial_elements * element_bytes) * ps_per_byte;
        CHECK(result.time == expected);
        request.count += 1; // blocks of two sizes
        cost = cost_of(which.kind, which.name, request);
        REQUIRE(cost);
        expected = static_cast<picoseconds>(cost->latencies) * 5 * us
                   + static_cast<picoseconds>(cost->serial_elements * element_bytes) * ps_per_byte;
        CHECK(run(which, request, uniform()).time <= expected);
      }
}

TEST_CASE("simulation: the critical path leads from the start to the end without a gap") {
  network odd = uniform();
  odd.odd_links = {{0, 1, 3}};
  network slow = uniform();
  slow.reduction_rate = 7e9;
  slow.copy_rate = 11e9;
  for (const auto& which : algorithms())
    for (uint32_t world_size : {2, 3, 8, 11})
      for (const auto& net : {uniform(), uniform(0), odd, slow}) {
        plan_request request{.world_size = world_size, .count = 1003};
        if (which.kind == proto::SEND_RECV)
          request.peer = 1;
        CAPTURE(which.name);
        CAPTURE(world_size);
        auto result = run(which, request, net);
        REQUIRE(!result.critical_path.empty());
        picoseconds now = 0;
        for (const auto& part : result.critical_path) {
          CHECK(part.start == now);
          CHECK(part.latency >= 0);
          now += part.transfer + part.latency;
        }
        CHECK(now == result.time);
        CHECK(length(result.critical_path) == result.time);
      }
}

TEST_CASE("simulation: a port carries one message at a time, and a waiting message occupies no other port") {
  // Rank 0 sends to 1, 2 and 3 in one round. The message from 3 to 2 can start at once, as the one from 0 to 2 waits.
  // When 0's first one is through, 2 is still receiving, so 3 is next; 2 gets the last one.
  std::vector<schedule> ranks(4);
  ranks[0] = {1, 0, {send_to(1, 100), send_to(2, 100), send_to(3, 100)}};
  ranks[1] = {1, 0, {recv_from(0, 100)}};
  ranks[2] = {1, 0, {recv_from(0, 100), recv_from(3, 150, 0, 100)}};
  ranks[3] = {1, 0, {recv_from(0, 100), send_to(2, 150)}};
  std::vector<std::pair<uint32_t, picoseconds>> starts; // by source * 10 + destination
  auto result = run(ranks, uniform(), [&](const simulated_activity& x) {
    starts.push_back({x.source * 10 + x.destination, x.start});
  });
  picoseconds one = 400 * ps_per_byte;
  CHECK(starts == std::vector<std::pair<uint32_t, picoseconds>>{{1, 0}, {32, 0}, {3, one}, {2, 2 * one}});
  CHECK(result.time == 3 * one + 5 * us);
  CHECK(result.messages == 4);
  CHECK(result.steps == 8);
  CHECK(result.bytes == 1800);
  CHECK(result.busiest_port == "the way out of rank 0");
  CHECK(result.busiest_share == doctest::Approx(static_cast<double>(3 * one) / static_cast<double>(3 * one + 5 * us)));
}

TEST_CASE("simulation: ranks do not wait for other ranks' rounds, and `then` waits for the previous step") {
  // Rank 0 talks to 1 in its rounds 0 and 1 while 2 and 3 are still in round 0.
  std::vector<schedule> ranks(4);
  ranks[0] = {2, 0, {send_to(1, 10), send_to(1, 10, 1)}};
  ranks[1] = {2, 0, {recv_from(0, 10), recv_from(0, 10, 1)}};
  ranks[2] = {1, 0, {send_to(3, 100000)}};
  ranks[3] = {1, 0, {recv_from(2, 100000)}};
  picoseconds last_of_1 = 0;
  auto result = run(ranks, uniform(us), [&](const simulated_activity& x) {
    if (x.destination == 1)
      last_of_1 = x.end;
  });
  CHECK(last_of_1 == 2 * (40 * ps_per_byte + us));
  CHECK(result.time == 400000 * ps_per_byte + us);

  // The second send goes to another rank, but only when the first has ended.
  std::vector<schedule> chain(3);
  chain[0] = {1, 0, {send_to(1, 10), send_to(2, 10)}};
  chain[1] = {1, 0, {recv_from(0, 10)}};
  chain[2] = {1, 0, {recv_from(0, 10)}};
  CHECK(run(chain, uniform(us)).time == 2 * 40 * ps_per_byte + us);
  chain[0].steps[1].then = true;
  CHECK(run(chain, uniform(us)).time == 2 * (40 * ps_per_byte + us));
}

TEST_CASE("simulation: reductions and copies take a rank's time, one after the other") {
  auto net = uniform(us);
  net.reduction_rate = 10e9; // 100 ps a byte: slower than the wire
  net.copy_rate = 20e9;
  std::vector<schedule> ranks(3);
  ranks[0] = {2, 0, {reduce_from(1, 100), reduce_from(2, 100, 100)}};
  ranks[0].steps.push_back(
    {.what = action::copy, .round = 1, .source = {buffer::output, 0, 50}, .destination = {buffer::output, 200, 50}});
  ranks[1] = {1, 0, {send_to(0, 100)}};
  ranks[2] = {1, 0, {send_to(0, 100)}};
  std::vector<simulated_activity> seen;
  auto result = run(ranks, net, [&](auto& x) { seen.push_back(x); });
  picoseconds wire = 400 * ps_per_byte, sum = 400 * 100, copy = 200 * 50;
  CHECK(result.time == wire + us + 2 * sum + copy);
  auto path = summary_of(result.critical_path);
  CHECK(path.messages == 1);
  CHECK(path.reductions == 2);
  CHECK(path.copies == 1);
  CHECK(path.transfer == wire);
  CHECK(path.work == 2 * sum + copy);
  CHECK(std::count_if(seen.begin(), seen.end(), [](auto& x) { return x.what == action::reduce; }) == 2);
  CHECK(result.busiest_port == "the way into rank 0");
}

TEST_CASE("simulation: one slow link slows down a ring in every round") {
  auto net = uniform();
  net.odd_links = {{3, 2, 10}}; // either direction
  auto result = run_all_reduce("ring", 8, 8000, net);
  picoseconds block = 4000 * ps_per_byte;
  CHECK(result.time > run_all_reduce("ring", 8, 8000, uniform()).time + 12 * 9 * block);
  CHECK(result.busiest_port == "the way out of rank 2");
  auto slow = std::count_if(result.critical_path.begin(), result.critical_path.end(),
                            [&](auto& x) { return x.source == 2 && x.transfer == 10 * block; });
  CHECK(slow >= 12);
}

TEST_CASE("simulation: a broken link ends it with a sentence that names the waiting ranks") {
  auto net = uniform();
  net.odd_links = {{2, 1, 1, true}};
  auto result = simulate(4, planner(proto::ALL_REDUCE, "ring", {.world_size = 4, .count = 8}), net, element_bytes);
  REQUIRE(result);
  CHECK(result->stuck
        == "the link 1-2 is broken: rank 1 waits in round 0 to send to rank 2; rank 2 waits in round 0 for rank 1; "
           "rank 0 waits in round 1 to send to rank 1; rank 3 waits in round 1 for rank 2");
  // The broken link is between ranks that never talk to each other.
  net.odd_links = {{0, 2, 1, true}};
  CHECK(run_all_reduce("ring", 4, 8, net).time == run_all_reduce("ring", 4, 8, uniform()).time);
}

TEST_CASE("simulation: ranks that wait for each other are found") {
  std::vector<schedule> ranks(2);
  ranks[0] = {2, 0, {recv_from(1, 1), send_to(1, 1, 1)}};
  ranks[1] = {2, 0, {recv_from(0, 1), send_to(0, 1, 1)}};
  auto result = run(ranks, uniform());
  CHECK(result.stuck
        == "the ranks wait for each other for ever: rank 0 waits in round 0 for rank 1; rank 1 waits in round 0 "
           "for rank 0");
  CHECK(result.time == 0);
}

TEST_CASE("simulation: hosts share their network cards") {
  // Ranks 0 and 1 on one host send to 2 and 3 on the other: one card each way, so one after the other.
  network net{.link = {5 * us, 50e9}, .hosts = {0, 0, 1, 1}, .inside_host = {us, 100e9}};
  std::vector<schedule> ranks(4);
  ranks[0] = {1, 0, {send_to(2, 100)}};
  ranks[1] = {1, 0, {send_to(3, 100)}};
  ranks[2] = {1, 0, {recv_from(0, 100)}};
  ranks[3] = {1, 0, {recv_from(1, 100)}};
  auto result = run(ranks, net);
  CHECK(result.time == 2 * 400 * ps_per_byte + 5 * us);
  CHECK(result.busiest_port == "the network card of host 0, outwards");
  // Inside of the hosts, nothing is shared and the link is faster.
  ranks[0] = {1, 0, {send_to(1, 100)}};
  ranks[1] = {1, 0, {recv_from(0, 100)}};
  ranks[2] = {1, 0, {send_to(3, 100)}};
  ranks[3] = {1, 0, {recv_from(2, 100)}};
  CHECK(run(ranks, net).time == 400 * 10 + us);
  // A ring crosses between hosts on one link each way only: as fast as the card, not slower.
  CHECK(run_all_reduce("ring", 8, 8000,
                       {.link = {0, 50e9}, .hosts = {0, 0, 0, 0, 1, 1, 1, 1}, .inside_host = {0, 100e9}})
          .time
        == 14 * 4000 * ps_per_byte);
}

TEST_CASE("simulation: hosts' cards are always busy if no message depends on another") {
  // 64 ranks on 8 hosts send to all others.
  network net{.link = {5 * us, 50e9}, .inside_host = {us, 300e9}};
  for (uint32_t rank = 0; rank < 64; ++rank)
    net.hosts.push_back(rank / 8);
  auto busiest = [&](proto::CollectiveKind kind, std::string_view name, bool as_they_come) {
    auto ranks = *plan_all(kind, name, {.world_size = 64, .count = uint64_t{64} << 20, .hosts = net.hosts});
    for (auto& each : ranks)
      for (auto& x : each.steps)
        x.then = x.then && !as_they_come;
    return run(ranks, net).busiest_share;
  };
  CHECK(busiest(proto::ALL_TO_ALL, "naive", false) > 0.99);
  CHECK(busiest(proto::ALL_REDUCE, "one_shot", true) > 0.8);
  CHECK(busiest(proto::ALL_REDUCE, "one_shot", false) < 0.35); // all want rank 0's first, and share its host's card
}

TEST_CASE("simulation: on two levels hierarchical algorithms take the sum of their phases, and flat ones longer") {
  constexpr uint64_t count = 64 * 1024;
  constexpr picoseconds across = 80, within = 4; // of a byte
  network net{.link = {20 * us, 1e12 / across}, .inside_host = {us, 1e12 / within}};
  plan_request request{.world_size = 16, .count = count};
  for (uint32_t rank = 0; rank < 16; ++rank)
    request.hosts.push_back(rank / 4);
  net.hosts = request.hosts;
  auto time_of = [&](proto::CollectiveKind kind, std::string_view name) {
    return run(**find_algorithm(kind, name), request, net).time;
  };
  // Within: 2 x 3 rounds of a quarter. Across: 2 x 3 rounds of a quarter of it, of each of the four ranks that share a
  // card. Ranks of a host use it one after the other, so the first message of the next round does not wait.
  const picoseconds phases = 6 * (us + count * within) + 6 * (20 * us + count * across);
  const auto hierarchical = time_of(proto::ALL_REDUCE, "hierarchical");
  CHECK(hierarchical <= phases);
  CHECK(hierarchical >= 6 * (us + count * within) + 6 * picoseconds{count} * across);
  for (auto name : {"halving_doubling", "butterfly", "tree", "naive", "direct"})
    CHECK(time_of(proto::ALL_REDUCE, name) > hierarchical);
  request.count = 64 * count;
  for (auto name : {"tree", "chain", "double_tree", "scatter_all_gather"})
    CHECK(time_of(proto::BROADCAST, "hierarchical") < time_of(proto::BROADCAST, name));
  request.count = count / 16;
  CHECK(time_of(proto::ALL_GATHER, "hierarchical") < time_of(proto::ALL_GATHER, "bruck"));
  CHECK(time_of(proto::REDUCE_SCATTER, "hierarchical") < time_of(proto::REDUCE_SCATTER, "pairwise"));
  request.count = 1;
  CHECK(time_of(proto::ALL_TO_ALL, "hierarchical") < time_of(proto::ALL_TO_ALL, "pairwise"));
}

TEST_CASE("simulation: a world of a thousand ranks, and one of one") {
  auto ring = run_all_reduce("ring", 1000, 1'000'000, uniform());
  CHECK(ring.time == 1998 * (5 * us + 4000 * ps_per_byte));
  CHECK(ring.steps == 4 * 999 * 1000);
  CHECK(ring.critical_path.size() == 1998);
  CHECK(run_all_reduce("ring", 1, 1000, uniform()).time == 0);
  CHECK(run_all_reduce("ring", 5, 0, uniform()).steps == 0);
}

TEST_CASE("simulation: impossible simulations are refused with a sentence") {
  auto text_of = [](const caf::expected<simulation>& x) {
    REQUIRE(!x);
    return render(x.error());
  };
  std::vector<schedule> ranks(2);
  ranks[0] = {1, 0, {send_to(1, 4), send_to(1, 4)}};
  ranks[1] = {1, 0, {recv_from(0, 4)}};
  CHECK(text_of(simulate(ranks, uniform(), 4)) == "rank 0 sends 2 blocks to rank 1, which receives 1 from it");
  ranks[1].steps.clear();
  CHECK(text_of(simulate(ranks, uniform(), 4)) == "rank 0 sends 2 blocks to rank 1, which receives 0 from it");
  ranks[0].steps = {send_to(1, 4)};
  ranks[1].steps = {recv_from(0, 5)};
  CHECK(text_of(simulate(ranks, uniform(), 4)) == "rank 0 sends 4 elements in round 0 and rank 1 expects 5");
  ranks[1].steps = {recv_from(1, 5)};
  CHECK(text_of(simulate(ranks, uniform(), 4)) == "rank 1, round 0: 1 is no peer");
  ranks[1].steps = {recv_from(0, 4)};
  CHECK(text_of(simulate(ranks, {.hosts = {0, 1, 1}}, 4)) == "the network has hosts for 3 ranks, and there are 2");
  CHECK(text_of(simulate(ranks, {.odd_links = {{0, 2}}}, 4))
        == "the link 0-2 wants a rank 2, and there are ranks 0 to 1");
  CHECK(text_of(simulate(ranks, {.link = {0, 1e-9}}, 4))
        == "the simulated time is more than 53 days, which is as far as it goes");
}

TEST_CASE("simulation: bus bandwidths have nccl-tests' factors, and a ring comes close to the link's") {
  CHECK(bus_bandwidth_factor(proto::ALL_REDUCE, 8) == doctest::Approx(1.75));
  CHECK(bus_bandwidth_factor(proto::ALL_GATHER, 8) == doctest::Approx(0.875));
  CHECK(bus_bandwidth_factor(proto::REDUCE_SCATTER, 4) == doctest::Approx(0.75));
  CHECK(bus_bandwidth_factor(proto::BROADCAST, 8) == 1);
  CHECK(size_count(proto::ALL_GATHER, {.world_size = 4, .count = 3}) == 12);
  CHECK(size_count(proto::ALL_GATHER, {.world_size = 2, .counts = {3, 4}}) == 7);
  CHECK(size_count(proto::ALL_REDUCE, {.world_size = 4, .count = 3}) == 3);
  CHECK(count_for_size(proto::ALL_TO_ALL, 4, 15) == 3);
  auto result = run_all_reduce("ring", 8, 1 << 28, uniform());
  auto bus = 4.0 * (1 << 28) / (static_cast<double>(result.time) * 1e-12) * bus_bandwidth_factor(proto::ALL_REDUCE, 8);
  CHECK(bus > 49.8e9);
  CHECK(bus < 50e9);
}

TEST_CASE("simulation: the trace has a process for each rank, and each message on two tracks") {
  std::vector<schedule> ranks(2);
  ranks[0] = {1, 0, {send_to(1, 100)}};
  ranks[1] = {1, 0, {recv_from(0, 100)}};
  std::vector<simulated_activity> seen;
  run(ranks, uniform(), [&](auto& x) { seen.push_back(x); });
  auto trace = trace_of(seen, 2);
  CHECK(trace.find(R"({"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"rank 1"}})")
        != std::string::npos);
  CHECK(trace.find(R"({"ph":"X","name":"to 1","pid":1,"tid":1,"ts":0.000000,"dur":0.008000,"args":{"round":0,"from":0,)"
                   R"("to":1,"bytes":400,"ended_us":5.008}})")
        != std::string::npos);
  CHECK(trace.find(R"({"ph":"X","name":"from 0","pid":2,"tid":2,"ts":0.000000)") != std::string::npos);
}
