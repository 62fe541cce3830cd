#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/schedule_json.hpp"

#include "messages/errc.hpp"
#include "runtime/proof/proof.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

constexpr std::string_view two_ranks = R"({"kind": "all_reduce", "ranks": 2, "count": 4, "schedules": [
  {"rounds": 2, "steps": [
    {"round": 0, "do": "recv_reduce", "peer": 1, "own": ["input", 0, 4], "to": ["output", 0, 4], "finish": true},
    {"round": 1, "do": "send", "peer": 1, "from": ["output", 0, 4]}]},
  {"rounds": 2, "scratch": 0, "steps": [
    {"round": 0, "do": "send", "peer": 0, "from": ["input", 0, 4]},
    {"round": 1, "do": "recv", "peer": 0, "to": ["output", 0, 4]}]}]})";

/// What is said about the file above with one of its words replaced.
std::string error_with(std::string_view word, std::string_view instead) {
  std::string text{two_ranks};
  auto at = text.find(word);
  REQUIRE(at != std::string::npos);
  auto read = parse_schedules(text.replace(at, word.size(), instead));
  REQUIRE(!read);
  CHECK(code_of(read.error()) == errc::invalid_argument);
  return render(read.error());
}

} // namespace

TEST_CASE("schedule json: what a person writes is read and proved") {
  auto read = parse_schedules(two_ranks);
  REQUIRE(read);
  CHECK(read->kind == proto::ALL_REDUCE);
  CHECK(read->request.count == 4);
  REQUIRE(read->ranks.size() == 2);
  CHECK(read->ranks[0].steps[0]
        == step{.what = action::recv_reduce,
                .round = 0,
                .peer = 1,
                .source = {buffer::input, 0, 4},
                .destination = {buffer::output, 0, 4},
                .finish = true});
  CHECK_FALSE(prove(read->kind, read->request, read->ranks).fault);
}

TEST_CASE("schedule json: what is written is read back as it was, for every action, flag and buffer") {
  schedule_set all{proto::SEND_RECV, {.world_size = 2, .count = 7, .root = 1, .peer = 0}, {}};
  all.ranks.push_back({3, 9, {}});
  block_range from{buffer::scratch, 2, 3}, to{buffer::output, 4, 3};
  for (auto what : {action::send, action::recv, action::recv_reduce, action::copy, action::reduce, action::fold})
    for (auto flag : {false, true}) {
      step x{.what = what, .round = 1, .peer = 0, .then = flag};
      if (what == action::send || what == action::recv || what == action::recv_reduce)
        x.peer = 1;
      if (what != action::recv)
        x.source = from;
      if (what != action::send)
        x.destination = to, x.finish = flag;
      all.ranks[0].steps.push_back(x);
    }
  all.ranks.push_back({3, 0, {}});
  auto read = parse_schedules(to_json(all));
  REQUIRE(read);
  CHECK(read->kind == all.kind);
  CHECK(read->request.root == 1);
  CHECK(read->request.peer == 0);
  CHECK(read->ranks == all.ranks);
}

TEST_CASE("schedule json: every algorithm's schedules are read back as they were") {
  for (const auto& algorithm : algorithms()) {
    schedule_set all{algorithm.kind, {.world_size = 5, .count = 13, .root = 2, .peer = 3}, {}};
    if (has_v_variant(algorithm.kind))
      all.request.counts.assign(algorithm.kind == proto::ALL_TO_ALL ? 25 : 5, 3);
    for (uint32_t rank = 0; rank < 5; ++rank) {
      auto request = all.request;
      request.rank = rank;
      all.ranks.push_back(algorithm.plan(request));
    }
    CAPTURE(algorithm.name);
    auto read = parse_schedules(to_json(all));
    REQUIRE(read);
    CHECK(read->ranks == all.ranks);
    CHECK(read->request.counts == all.request.counts);
  }
}

TEST_CASE("schedule json: an error names the rank, step and key, the value, and what is allowed") {
  CHECK(error_with("\"peer\": 1, \"from\"", "\"peer\": 1, \"form\"")
        == "rank 0, step 1: unknown key \"form\"; allowed are: round, do, peer, from, then");
  CHECK(error_with("\"recv\"", "\"receive\"")
        == "rank 1, step 1, \"do\": must be one of \"send\", \"recv\", \"recv_reduce\", "
           "\"copy\", \"reduce\", \"fold\", and is \"receive\"");
  CHECK(error_with("[\"input\", 0, 4]", "[\"inputs\", 0, 4]")
        == "rank 0, step 0, \"own\", entry 0: must be one of \"input\", \"output\", \"scratch\", "
           "and is \"inputs\"");
  CHECK(error_with("[\"input\", 0, 4]", "[\"input\", 0.5, 4]")
        == "rank 0, step 0, \"own\", entry 1: must be a whole number from 0 to 9007199254740991, "
           "and is 0.5");
  CHECK(error_with("[\"input\", 0, 4]", "[\"input\", 0]")
        == "rank 0, step 0, \"own\": must be [\"input\", \"output\" or \"scratch\", first element, "
           "number of elements], and is [\"input\",0]");
  CHECK(error_with("\"finish\": true", "\"finish\": 1")
        == "rank 0, step 0, \"finish\": must be true or false, and is 1");
  CHECK(error_with("\"round\": 0, \"do\": \"send\"", "\"do\": \"send\"")
        == "rank 1, step 0, \"round\": must be a whole number from 0 to 4294967295, and is missing");
  CHECK(error_with("\"rounds\": 2", "\"rounds\": -2")
        == "rank 0, \"rounds\": must be a whole number from 0 to 4294967295, and is -2");
  CHECK(error_with("\"ranks\": 2", "\"ranks\": 3")
        == "the file, \"schedules\": must be a list of 3, one for each rank, and is "
           "[{\"rounds\":2,\"steps\":[{\"round\":0,\"do\":\"recv_reduce\",\"peer\":1...");
  CHECK(error_with("all_reduce", "al_reduce")
          .starts_with("\"kind\": there is no collective \"al_reduce\"; there are: all_reduce"));
  CHECK(error_with("\"ranks\": 2", "\"ranks\": 0") == "a collective wants at least one rank, and the world size is 0");
  CHECK(error_with("]}]}]}", "]}]")
        == "line 7, column 67: this is not JSON: syntax error while parsing object - unexpected end of input; expected "
           "'}'");
  CHECK(error_with("\"finish\": true}", "\"finish\": true, \"finish\": true}")
        == "the key \"finish\" appears twice in an object");
  CHECK(error_with("\"count\": 4", "\"count\": 9007199254740993")
        == "the file, \"count\": must be a whole number from 0 to 9007199254740991, "
           "and is 9007199254740993");
}
