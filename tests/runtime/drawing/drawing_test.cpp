#include "runtime/algorithms/registry.hpp"
#include "runtime/drawing/drawing.hpp"

#include "messages/errc.hpp"
#include "runtime/drawing/svg_canvas.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

using namespace ringmaster;

namespace {

walk_through walk_all(const algorithm& which, const plan_request& request) {
  auto story = walk(which.kind, which.name, request);
  REQUIRE_MESSAGE(story, (story ? "" : render(story.error())));
  return std::move(*story);
}

walk_through walk_all(proto::CollectiveKind kind, std::string_view name, const plan_request& request) {
  return walk_all(**find_algorithm(kind, name), request);
}

plan_request small_request(const algorithm& which, uint32_t world_size) {
  auto blocked = has_v_variant(which.kind);
  return {.world_size = world_size, .count = blocked ? 1 : world_size, .peer = 1};
}

/// How often a part is in a text.
size_t times(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

std::string svg_attribute(const std::string& element, const std::string& name) {
  auto at = element.find(" " + name + "=\"");
  REQUIRE(at != std::string::npos);
  at += name.size() + 3;
  return element.substr(at, element.find('"', at) - at);
}

} // namespace

TEST_CASE("drawing: the walk through a ring has its messages and blocks") {
  auto story = walk_all(proto::ALL_REDUCE, "ring", {.world_size = 4, .count = 4});
  CHECK(story.blocks == 4);
  REQUIRE(story.rounds.size() == 6);
  const auto& first = story.rounds[0];
  REQUIRE(first.activities.size() == 4);
  for (const auto& x : first.activities) {
    CHECK(x.destination == (x.source + 1) % 4);
    CHECK(x.what == action::recv_reduce);
    CHECK(x.contents == std::vector<content>{{x.source, 1u << x.source}});
  }
  CHECK(first.after[1].output == std::vector<content>{{0, 0b0011}, {}, {}, {}});
  CHECK(story.rounds[2].after[0].output[1] == content{1, 0b1111});
  for (uint32_t rank = 0; rank < 4; ++rank)
    for (uint32_t block = 0; block < 4; ++block)
      CHECK(story.rounds.back().after[rank].output[block] == content{block, 0b1111});
}

TEST_CASE("drawing: every algorithm ends with the collective's result") {
  for (const auto& which : algorithms())
    for (uint32_t world_size : {2, 3, 5, 8, 16}) {
      CAPTURE(name_of(which.kind));
      CAPTURE(which.name);
      CAPTURE(world_size);
      auto request = small_request(which, world_size);
      auto story = walk_all(which, request);
      REQUIRE(!story.rounds.empty());
      for (uint32_t rank = 0; rank < world_size; ++rank) {
        auto& output = story.rounds.back().after[rank].output;
        if (which.kind != proto::BARRIER)
          CHECK(output.empty() == (output_count(which.kind, request, rank) == 0));
        for (const auto& cell : output) {
          CHECK(cell.block != content::nothing);
          CHECK(cell.ranks != 0);
          if (reduces(which.kind) || which.kind == proto::BARRIER) // the inputs of all ranks, or all ranks have arrived
            CHECK(cell.ranks == (1u << world_size) - 1);
          else
            CHECK((cell.ranks & (cell.ranks - 1)) == 0);
        }
      }
    }
}

TEST_CASE("drawing: every message of the schedules appears in one round") {
  for (const auto& which : algorithms()) {
    CAPTURE(which.name);
    auto request = small_request(which, 6);
    size_t receives = 0, drawn = 0;
    for (request.rank = 0; request.rank < 6; ++request.rank) {
      auto planned = plan(which.kind, which.name, request);
      REQUIRE(planned);
      receives += static_cast<size_t>(std::count_if(planned->steps.begin(), planned->steps.end(),
                                                    [](auto& x) { return x.what != action::send; }));
    }
    request.rank = 0;
    for (const auto& round : walk_all(which, request).rounds)
      drawn += round.activities.size();
    CHECK(drawn == receives);
  }
}

TEST_CASE("drawing: arrows of one lane do not overlap, and chains go downwards") {
  for (const auto& which : algorithms())
    for (uint32_t world_size : {2, 4, 7, 16}) {
      CAPTURE(which.name);
      CAPTURE(world_size);
      for (const auto& round : walk_all(which, small_request(which, world_size)).rounds) {
        auto plan = lanes_of(round);
        std::set<std::pair<uint32_t, uint32_t>> taken; // a lane between a rank and the next one
        std::set<std::pair<uint32_t, uint32_t>> on_ranks;
        for (size_t i = 0; i < round.activities.size(); ++i) {
          const auto& x = round.activities[i];
          REQUIRE(plan.lanes[i] < plan.count);
          for (auto at = std::min(x.source, x.destination); at < std::max(x.source, x.destination); ++at)
            CHECK(taken.insert({plan.lanes[i], at}).second);
          if (x.source == x.destination)
            CHECK(on_ranks.insert({plan.lanes[i], x.source}).second);
          for (size_t k = 0; k < i; ++k)
            if (round.activities[k].order < x.order)
              CHECK(plan.lanes[k] < plan.lanes[i]);
        }
      }
    }
}

TEST_CASE("drawing: labels of one lane do not overlap") {
  for (const auto& which : algorithms()) {
    CAPTURE(name_of(which.kind));
    CAPTURE(which.name);
    auto svg = svg_of(walk_all(which, small_request(which, 8)), which.formula);
    std::set<std::tuple<double, double, double>> chips; // y, left, right
    for (auto at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) {
      auto element = svg.substr(at, svg.find("/>", at) - at);
      if (element.find("rx=\"5\"") == std::string::npos)
        continue;
      auto x = std::stod(svg_attribute(element, "x")), width = std::stod(svg_attribute(element, "width"));
      chips.insert({std::stod(svg_attribute(element, "y")), x, x + width});
    }
    for (auto a = chips.begin(); a != chips.end(); ++a)
      if (auto b = std::next(a); b != chips.end() && std::get<0>(*a) == std::get<0>(*b))
        CHECK(std::get<2>(*a) < std::get<1>(*b));
  }
}

TEST_CASE("drawing: the picture has an arrow for each message, and every rank in every round") {
  const auto& ring = **find_algorithm(proto::ALL_REDUCE, "ring");
  auto svg = svg_of(walk_all(ring, {.world_size = 4, .count = 4}), "a < b & c");
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(times(svg, "<polygon") == 6 * 4);
  CHECK(times(svg, "r=\"12.0\"") == 7 * 4); // with the inputs
  CHECK(times(svg, "<text") == times(svg, "</text>"));
  CHECK(times(svg, ">round 5</text>") == 1);
  CHECK(times(svg, ">a &lt; b &amp; c</text>") == 1);
  for (uint32_t count : {1, 4, 16})
    for (uint32_t index = 0; index < count; ++index)
      for (uint32_t other = 0; other < index; ++other)
        CHECK(distinct_colour(index, count) != distinct_colour(other, count));
}

TEST_CASE("drawing: labels name blocks, ranks, or both") {
  walk_through story{.kind = proto::ALL_REDUCE, .world_size = 4, .blocks = 8};
  CHECK(label_of(story, {{3, 1}}) == "3");
  CHECK(label_of(story, {{2, 1}, {1, 1}, {3, 1}}) == "1-3");
  CHECK(label_of(story, {{0, 1}, {2, 1}}) == "0,2");
  CHECK(label_of(story, {{0, 1}, {2, 1}, {4, 1}, {6, 1}}) == "4 blocks");
  story.blocks = 1;
  CHECK(label_of(story, {{0, 0b0100}}) == "x2");
  CHECK(label_of(story, {{0, 0b0111}}) == "x0-x2");
  CHECK(label_of(story, {{0, 0b1111}}) == "sum");
  story.kind = proto::ALL_GATHER;
  CHECK(label_of(story, {{0, 0b0010}, {0, 0b0100}}) == "1-2");
  story.kind = proto::ALL_TO_ALL;
  story.blocks = 4;
  CHECK(label_of(story, {{3, 0b0010}}) == "1>3");
  CHECK(label_of(story, {{3, 0b0010}, {1, 0b0010}}) == "1>1,3");
  CHECK(label_of(story, {{3, 0b0010}, {0, 0b0100}}) == "1>3 2>0");
}

TEST_CASE("drawing: the text has a line for each rank, with blocks sent, received and held") {
  auto text = text_of(walk_all(proto::ALL_REDUCE, "ring", {.world_size = 3, .count = 3}), "formula");
  CHECK(text.starts_with("all_reduce: ring, 3 ranks\nformula\n"));
  CHECK(times(text, "\nround ") == 4);
  CHECK(text.find("\nround 0\n"
                  "   0  [0] -> 1; [2] <+ 2  | ... ... 0.2\n"
                  "   1  [1] -> 2; [0] <+ 0  | 01. ... ...\n"
                  "   2  [2] -> 0; [1] <+ 1  | ... .12 ...\n")
        != std::string::npos);
}

TEST_CASE("drawing: impossible pictures are refused with a sentence") {
  auto text_of_error = [](const caf::expected<walk_through>& x) {
    REQUIRE(!x);
    CHECK(code_of(x.error()) == errc::invalid_argument);
    return render(x.error());
  };
  CHECK(text_of_error(walk(proto::ALL_REDUCE, "ring", {.world_size = 17, .count = 4}))
        == "a picture has at most 16 ranks");
  CHECK(text_of_error(walk(proto::ALL_REDUCE, "ring", {.world_size = 2, .count = 5000}))
        == "a picture has at most 4096 elements a buffer");
  std::vector<schedule> ranks(2);
  ranks[0] = {2,
              0,
              {{.what = action::recv, .peer = 1, .destination = {buffer::output, 0, 1}},
               {.what = action::send, .round = 1, .peer = 1, .source = {buffer::input, 0, 1}}}};
  ranks[1] = {2,
              0,
              {{.what = action::recv, .peer = 0, .destination = {buffer::output, 0, 1}},
               {.what = action::send, .round = 1, .peer = 0, .source = {buffer::input, 0, 1}}}};
  plan_request request{.world_size = 2, .count = 1};
  auto stuck = walk(proto::ALL_REDUCE, "mine", request, ranks);
  REQUIRE(stuck);
  CHECK(render(stuck->fault) == "rank 0 waits in round 0 for ever");
  CHECK(stuck->rounds.size() == 2);
  CHECK(svg_of(*stuck, "").find("fault: rank 0 waits in round 0 for ever") != std::string::npos);
  ranks[0].steps[1].source.offset = 7;
  CHECK(text_of_error(walk(proto::ALL_REDUCE, "mine", request, ranks))
        == "rank 0, round 1: a step does not fit the buffers");
}
