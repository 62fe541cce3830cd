#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/console/set_columns.hpp"
#include "tools/puzzles/puzzle_check.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

outcome run(const std::vector<std::string>& args) {
  return run_command(puzzles_command(), args);
}

std::string sentence_of(const std::vector<std::string>& args) {
  auto result = run(args);
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  return result.err;
}

std::string text_in(const std::string& file) {
  return content_of(RINGMASTER_SOURCE_DIR "/" + file);
}

/// "1,835,008".
std::string grouped(uint64_t x) {
  auto text = std::to_string(x);
  for (auto at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

/// Puzzle 0 as it must not be: the gradients are of the first samples only.
strategy partly(rank& self, const model& m, uint64_t samples) {
  auto [w, state] = co_await self.load_weights(0);
  auto [above, its_state] = co_await self.load_weights(1);
  auto x = co_await self.input({0, samples});
  auto y = co_await self.forward(x, w);
  auto z = co_await self.forward(y, above);
  auto [gradient, by_input] = co_await self.backward(y, above, co_await self.loss(z));
  co_await self.update(above, its_state, std::move(gradient));
  auto [first, rest] = co_await self.backward(x, w, by_input);
  co_await self.update(w, state, std::move(first));
  co_await self.finish(std::move(w));
  if (m.layers > 1)
    co_await self.finish(std::move(above));
}

} // namespace

TEST_CASE("puzzles: our solutions take the originals' time, and hold no more") {
  CHECK(puzzles().size() == 8);
  for (auto& which : puzzles()) {
    CAPTURE(which.number);
    auto found = check_solution(which);
    CHECK_MESSAGE(found.judged == verdict::solved, render(found.error));
    CHECK(found.peak_memory <= which.reference_memory);
    // Puzzle 7's has fewer ranks in a collective, and fewer updates a rank.
    const auto expected = which.number == 7 ? 14.0 : which.reference_time;
    CHECK(std::abs(found.time - expected) <= 1e-12 * expected);
    CHECK(!text_in(std::string{which.solution_file}).empty());
  }
}

TEST_CASE("puzzles: a stub states the puzzle, and is reported as not written yet") {
  for (auto& which : puzzles()) {
    CAPTURE(which.number);
    auto text = text_in(which.stub_file());
    CHECK(text.find(fmt::format("// Puzzle {}: {}", which.number, which.name)) == 0);
    CHECK(text.find(fmt::format("// Target: time {}, peak memory {}.", which.reference_time,
                                grouped(which.reference_memory)))
          != std::string::npos);
    if (text.find("co_return; // Your program goes here.") != std::string::npos)
      CHECK(check_stub(which).judged == verdict::not_written_yet);
  }
}

TEST_CASE("puzzles: a program is wrong, slower, larger or solved, and a sentence says why it is wrong") {
  auto& first = puzzles()[0];
  auto judged = [&](uint64_t samples) {
    return check(first, [&first, samples](rank& self) { return partly(self, first.trained, samples); });
  };
  auto broken = judged(3);
  CHECK(broken.judged == verdict::wrong);
  CHECK(render(broken.error) == "rank 0, update: the gradient is incomplete: it has samples 0-2 of 0-3");
  auto wasteful = judged(4); // it holds the model's output until the end
  CHECK(wasteful.judged == verdict::right);
  CHECK(wasteful.larger);
  CHECK(!wasteful.slower);

  auto& second = puzzles()[2]; // each rank for itself
  auto alone = check(second, [&](rank& self) { return first.solution(self, second.trained); });
  CHECK(alone.judged == verdict::right);
  CHECK(alone.slower);
  CHECK(alone.larger);
}

TEST_CASE("puzzles: begun is not the same as not written yet") {
  auto& first = puzzles()[0];
  auto begun = check(first, [](rank& self) -> strategy { co_await self.load_weights(0); });
  CHECK(begun.judged == verdict::wrong);
  CHECK(render(begun.error) == "no rank has finished the weight of layer 0: update it, and finish it");
  auto refused = check(first, [](rank& self) -> strategy { co_await self.load_weights(7); });
  CHECK(render(refused.error) == "rank 0, load_weights: there is no layer 7, only 0 to 1");
}

TEST_CASE("puzzles: the text has the task and the numbers, the table all eight") {
  auto one = run({"2"});
  CHECK(one.code == (check_stub(puzzles()[2]).judged >= verdict::right ? 0 : 1));
  CHECK(one.out.find("Puzzle 2: distributed data parallel. 4 ranks, 2 layers, a global batch of 4.\n") == 0);
  CHECK(one.out.find("\nreference           5.1      1835008\n") != std::string::npos);
  CHECK(one.out.find("read it in training/strategies/data_parallel.cpp") != std::string::npos);
  auto all = run({});
  CHECK(all.code == 0);
  for (auto& which : puzzles())
    CHECK(all.out.find(fmt::format("\n{}  {} ", which.number, which.name)) != std::string::npos);
  const set_columns narrow{"80"};
  auto some = run({}).out;
  check_width(some, 80);
  CHECK(some.find("\nNot shown: peak memory, reference, its memory (--wide shows all)\n") != std::string::npos);
  CHECK(run({"--help"}).out.find("Usage: ringmaster puzzles [N] [options]") == 0);
}

TEST_CASE("puzzles: the object and the list are JSON") {
  auto one = parse_json(run({"3", "--json"}).out);
  REQUIRE(one.engaged());
  CHECK(one->at("number").get<double>() == 3);
  CHECK(one->at("ranks").get<double>() == 4);
  CHECK(one->at("layers").get<double>() == 6);
  CHECK(one->at("batches").get<double>() == 4);
  CHECK(one->at("stub").get<std::string>() == "examples/puzzles/puzzle_3.cpp");
  CHECK(one->at("reference_memory").get<double>() == 2'752'512);
  CHECK(std::abs(one->at("solution_time").get<double>() - 19.9) < 1e-10);
  for (auto name : {"name", "verdict", "error", "time", "peak_memory", "reference_time", "solution", "solution_memory"})
    CHECK(one->contains(name));
  auto all = parse_json(run({"--json"}).out);
  REQUIRE(all.engaged());
  CHECK(all->is_array());
  CHECK(all->size() == 8);
}

TEST_CASE("puzzles: bad input gets a sentence") {
  CHECK(sentence_of({"9"}) == "ringmaster puzzles: there is no puzzle \"9\"; there are 0 to 7\n");
  CHECK(sentence_of({"x"}) == "ringmaster puzzles: there is no puzzle \"x\"; there are 0 to 7\n");
  CHECK(sentence_of({"1", "2"}) == "ringmaster puzzles: one puzzle at a time, or none for all, not 1 and 2\n");
  CHECK(sentence_of({"--jsonn"}).find("did you mean --json?") != std::string::npos);
}

TEST_CASE("puzzles: a picture and a trace are of one puzzle, and of a program that is written") {
  CHECK(sentence_of({"--svg", "x"}).find("--svg and --trace are of one puzzle") != std::string::npos);
  temporary_directory dir;
  auto svg = (dir.path() / "mine.svg").string(), trace = (dir.path() / "mine.json").string();
  for (auto& which : puzzles()) {
    auto shown = run({std::to_string(which.number), "--svg", svg, "--trace", trace});
    const auto written = check_stub(which).judged;
    CHECK(shown.code == (written >= verdict::right ? 0 : 1));
    CHECK(std::filesystem::remove(svg) == (written >= verdict::right));
    if (written == verdict::not_written_yet)
      CHECK(shown.err
            == fmt::format("ringmaster puzzles: {} is not written yet: there is nothing to show\n", which.stub_file()));
  }
}
