#include "tools/console/progress.hpp"

#include "tests/support/captured_command.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

constexpr auto take_away = "\r\033[K";

/// What a course of events writes to the terminal; `course` gets the progress and the time, which it moves on.
template <class Course>
outcome told(Course course) {
  return captured([&](std::FILE* out, std::FILE* err) {
    progress::time_point now{100s};
    progress line{"prove", err, [&] { return now; }};
    course(line, now, out);
    return 0;
  });
}

std::string line_of(std::string text) {
  return take_away + text;
}

} // namespace

TEST_CASE("progress: says nothing in the first second, then how far it is and how long the rest takes") {
  auto end = told([](progress& line, auto& now, std::FILE*) {
    now += 999ms;
    line.at(0.9);
    now += 1ms;
    line.at(0.25);
    now += 199ms;
    line.at(0.5); // too soon after the last one
    now += 1ms;
    line.at(0.5);
    now += 200ms;
    line.at(0.001);
    now += 100s;
    line.at(0.25);
    now += 10'000s;
    line.at(0.5);
  });
  CHECK(end.err
        == line_of("prove: 25 % done, about 3 s left") + line_of("prove: 50 % done, about 2 s left")
             + line_of("prove: 0 % done") + line_of("prove: 25 % done, about 5 min 5 s left")
             + line_of("prove: 50 % done, about 2 h 48 min left") + take_away);
}

TEST_CASE("progress: what is done within a second leaves nothing on the terminal") {
  auto end = told([](progress& line, auto& now, std::FILE* out) {
    now += 900ms;
    line.at(0.5);
    line.print(out, "row\n");
  });
  CHECK(end.err == "");
  CHECK(end.out == "row\n");
}

TEST_CASE("progress: a line that is longer than the terminal is cut, because a wrapped line cannot be cleared") {
  auto end = told([](progress& line, auto& now, std::FILE*) {
    now += 2s;
    line.at(0.5, std::string(200, 'x'));
  });
  const std::string begin = "prove: 50 % done, about 2 s left, ";
  CHECK(end.err == line_of(begin + std::string(100 - 1 - 3 - begin.size(), 'x') + "...") + take_away);
}

TEST_CASE("progress: printed rows replace the line, and the line returns after them") {
  auto end = told([](progress& line, auto& now, std::FILE* out) {
    now += 2s;
    line.at(0.5);
    line.print(out, "row\n");
    line.print(out, "another\n");
    now += 2s;
    line.at(0.75);
  });
  CHECK(end.out == "row\nanother\n");
  CHECK(end.err
        == line_of("prove: 50 % done, about 2 s left") + take_away + line_of("prove: 75 % done, about 2 s left")
             + take_away);
}

TEST_CASE("progress: what was done before takes no time, and what else there is to say comes last") {
  auto end = told([](progress& line, auto& now, std::FILE*) {
    now += 2s;
    line.begin_at(0.5);
    line.at(0.75, "loss 0.5");
  });
  CHECK(end.err == line_of("prove: 75 % done, about 2 s left, loss 0.5") + take_away);
}
