#include "training/pictures/train_picture.hpp"

#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/commands.hpp"
#include "training/pictures/train_boxes.hpp"
#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// A step that has been simulated.
struct simulated {
  train_run what;
  training_outcome found;

  simulated(std::string_view strategy, model trained, uint32_t ranks) : what{strategy, trained, ranks, &lab_costs()} {
    auto* known = strategy_of(strategy);
    REQUIRE(known != nullptr);
    auto program = [&](rank& self) { return known->run(self, what.trained); };
    auto run = simulate(program, what.trained, ranks, *what.costs, true);
    REQUIRE(run.engaged());
    found = std::move(*run);
  }

  std::string picture() const {
    auto text = picture_of(what, found);
    REQUIRE(text.engaged());
    return *text;
  }
};

simulated small_1f1b() {
  return {"1f1b", model{.layers = 4, .global_batch = 8, .micro_batch = 2}, 2};
}

/// The micro-batches of the boxes of a kind, in order.
std::vector<uint32_t> numbers(const std::vector<train_box>& row, box_kind kind) {
  std::vector<uint32_t> result;
  for (auto& box : row)
    if (box.kind == kind)
      result.push_back(box.micro_batch.value_or(UINT32_MAX));
  return result;
}

/// Every element is closed, in order, and no text has what must be escaped.
bool well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size();) {
    auto is = [&](std::string_view part) { return xml.compare(at, part.size(), part) == 0; };
    if (is("&") && !is("&lt;") && !is("&gt;") && !is("&amp;"))
      return false;
    if (xml[at] != '<') {
      at += 1;
      continue;
    }
    const auto end = xml.find('>', at);
    if (end == std::string::npos)
      return false;
    const auto tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos || std::count(tag.begin(), tag.end(), '"') % 2 != 0)
      return false;
    const auto name = tag.substr(0, tag.find(' '));
    if (name.front() == '/') {
      if (open.empty() || "/" + open.back() != name)
        return false;
      open.pop_back();
    } else if (tag.back() != '/')
      open.push_back(name);
    at = end + 1;
  }
  return open.empty();
}

} // namespace

TEST_CASE("train picture: the layers of a stage are one box, numbered by its micro-batch") {
  auto boxes = boxes_of(small_1f1b().found);
  CHECK(boxes.micro_batches == 4);
  CHECK(boxes.samples == 2);
  CHECK(boxes.chunks == 1);
  REQUIRE(boxes.ranks.size() == 2);
  for (auto& each : boxes.ranks) {
    CHECK(numbers(each.own, box_kind::forward) == std::vector<uint32_t>{0, 1, 2, 3});
    CHECK(numbers(each.own, box_kind::backward) == std::vector<uint32_t>{0, 1, 2, 3});
    CHECK(numbers(each.own, box_kind::communication).size() == 8);
    CHECK(numbers(each.own, box_kind::update).size() == 1);
    CHECK(each.aside.empty());
    for (size_t i = 1; i < each.own.size(); ++i)
      CHECK(each.own[i - 1].end <= each.own[i].start + 1e-12);
  }
}

TEST_CASE("train picture: a rank with several stages has a chunk for each, also where they are neighbours") {
  auto boxes = boxes_of(simulated{"zb-v", model{.layers = 8, .global_batch = 8, .micro_batch = 1}, 4}.found);
  CHECK(boxes.chunks == 2);
  for (auto& each : boxes.ranks)
    for (uint32_t chunk : {0, 1})
      CHECK(std::count_if(each.own.begin(), each.own.end(),
                          [&](auto& box) { return box.kind == box_kind::forward && box.chunk == chunk; })
            == 8);
}

TEST_CASE("train picture: layers of experts are numbered by the rank's own micro-batches") {
  auto boxes = boxes_of(
    simulated{"expert", model{.layers = 4, .global_batch = 8, .micro_batch = 1, .parallel = {.ep = 2}}, 4}.found);
  REQUIRE(boxes.ranks.size() == 4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const auto shown = numbers(boxes.ranks[rank].own, box_kind::forward);
    REQUIRE(shown.size() == 8); // 4 layers, 2 micro-batches
    for (auto number : shown)
      CHECK(number / 2 == rank);
  }
}

TEST_CASE("train picture: has a row for each rank, all numbers and the peak") {
  auto run = small_1f1b();
  auto picture = run.picture();
  CHECK(picture.find(">1f1b: 2 ranks, 4 layers, 4 micro-batches of 2 samples<") != std::string::npos);
  CHECK(picture.find(">rank 0<") != std::string::npos);
  CHECK(picture.find(">rank 1<") != std::string::npos);
  CHECK(picture.find(">rank 2<") == std::string::npos);
  CHECK(occurrences(picture, R"(fill="#4a7fd4")") == 8 + 1); // forwards, and the legend
  CHECK(occurrences(picture, R"(fill="#3d9a5b")") == 8 + 1); // backwards
  for (int number = 0; number < 4; ++number)
    CHECK(occurrences(picture, R"(fill="#ffffff">)" + std::to_string(number) + "<") == 4);
  // Weights, states and gradients of 2 layers, the inputs of 2 micro-batches, and one's gradient by the output.
  CHECK(run.found.ranks[run.found.peak_rank].peak_memory == 2 * 3 * 4096 * 4096 + (2 * 2 + 1) * 2 * 4096 * 1024);
  CHECK(picture.find(">peak 143 M elements<") != std::string::npos);
  CHECK(picture.find("2nd stream") == std::string::npos);
  CHECK(picture == small_1f1b().picture()); // the same input, the same bytes
}

TEST_CASE("train picture: a rank that uses its second stream has a row for it") {
  simulated run{"ddp-overlap", model{.layers = 4, .global_batch = 8}, 2};
  CHECK(occurrences(run.picture(), ">2nd stream<") == 2);
  for (auto& each : boxes_of(run.found).ranks)
    CHECK(numbers(each.aside, box_kind::communication).size() == 4);
}

TEST_CASE("train picture: a column shows the kind with most of its time, or nothing") {
  train_boxes boxes;
  boxes.ranks.resize(1);
  boxes.ranks[0].own = {{.kind = box_kind::forward, .micro_batch = 1, .start = 0, .end = 2.4},
                        {.kind = box_kind::loss, .start = 2.4, .end = 2.6},
                        {.kind = box_kind::backward, .start = 2.6, .end = 2.9},
                        {.kind = box_kind::backward, .start = 2.95, .end = 4},
                        {.kind = box_kind::update, .start = 5.8, .end = 6},
                        {.kind = box_kind::backward, .chunk = 1, .start = 7, .end = 8}};
  const auto row = boxes.in_columns(8, 8).ranks[0].own;
  REQUIRE(row.size() == 3);
  CHECK(row[0].kind == box_kind::forward);
  CHECK(!row[0].micro_batch);
  CHECK(row[0].start == 0);
  CHECK(row[0].end == 3); // 0.4 of the third is forward, 0.35 backward
  CHECK(row[1].kind == box_kind::backward);
  CHECK(row[1].start == 3);
  CHECK(row[2].kind == box_kind::backward);
  CHECK(row[2].chunk == 1);
}

TEST_CASE("train picture: is well-formed XML for any names") {
  auto run = small_1f1b();
  run.what.strategy = "a<b & \"c\">";
  auto picture = run.picture();
  CHECK(well_formed(picture));
  CHECK(picture.find(">a&lt;b &amp; \"c\"&gt;: 2 ranks") != std::string::npos);
  CHECK(!well_formed("<svg><g></svg>"));
}

TEST_CASE("train picture: too many ranks are refused with what to do, and of many boxes each pixel shows the most") {
  temporary_directory dir;
  auto file = dir.path() / "step.svg";
  auto draw = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"train", "--svg", file.string()});
    return run_command(simulate_command(), args);
  };
  auto ranks = draw({"--strategy=ddp", "--ranks=33", "--global-batch=33"});
  CHECK(ranks.code == 2);
  CHECK(ranks.err
        == "ringmaster simulate train: --svg: a picture has at most 32 ranks, not 33: take fewer --ranks, "
           "or --trace\n");
  auto boxes = draw({"--strategy=gpipe", "--ranks=2", "--layers=2", "--global-batch=4000"});
  CHECK(boxes.code == 0);
  const auto many = content_of(file);
  CHECK(well_formed(many));
  CHECK(occurrences(many, "<rect") < 2 * 1200 + 40);
  auto drawn = draw({"--strategy=ddp", "--ranks=32"});
  CHECK(drawn.code == 0);
  CHECK(drawn.out.find("Wrote " + file.string() + ".\n") != std::string::npos);
  CHECK(well_formed(content_of(file)));
}
