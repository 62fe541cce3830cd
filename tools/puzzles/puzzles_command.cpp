#include "tools/puzzles/puzzles_command.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_value.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/options/option_table.hpp"
#include "tools/puzzles/puzzle_check.hpp"
#include "tools/console/time_limit.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

constexpr int exit_usage = 2;

constexpr auto puzzles_help = R"(usage: ringmaster puzzles [N] [--json]

The eight LLM training puzzles (Sasha Rush, 2023): write a training strategy that takes no longer, and holds no more,
than the reference, which is the original's solution. Without N it says how far you are; with N it has the task of
puzzle N, and what your program for it comes to in virtual time.

Your program is in examples/puzzles/puzzle_N.cpp. `./run build` compiles it into this program.

  --json   one object a puzzle instead of the text, in a list without N
  --help   this text
)";

struct puzzles_options {
  const puzzle* only = nullptr; ///< Null: all.
  bool json = false;
  bool help = false;
};

caf::expected<puzzles_options> parse(std::span<const std::string> args) {
  puzzles_options result;
  const auto last = puzzles().size() - 1;
  option_table table{"puzzles"};
  table.positional([&](const std::string& text) -> caf::error {
    auto number = parse_whole(text, 0, last);
    if (!number)
      return make_error(errc::invalid_argument,
                        fmt::format("there is no puzzle \"{}\"; there are 0 to {}", text, last));
    if (result.only != nullptr)
      return make_error(errc::invalid_argument, fmt::format("one puzzle at a time, or none for all, not {} and {}",
                                                            result.only->number, *number));
    result.only = &puzzles()[*number];
    return caf::none;
  });
  table.flag("--json", result.json);
  if (auto problem = table.read(args))
    return problem;
  result.help = table.help();
  return result;
}

std::string_view words_of(verdict x) {
  switch (x) {
    case verdict::not_written_yet: return "not written yet";
    case verdict::wrong: return "wrong";
    case verdict::right: return "right, but slower or larger than the reference";
    case verdict::solved: break;
  }
  return "solved";
}

bool is_right(const puzzle_result& x) {
  return x.judged >= verdict::right;
}

/// Which of the two it is.
std::string short_verdict(const puzzle_result& x) {
  if (x.judged != verdict::right)
    return std::string{words_of(x.judged)};
  return fmt::format("right, but {}", x.slower && x.larger ? "slower and larger" : x.slower ? "slower" : "larger");
}

std::string sentence_of(const puzzle& which, const puzzle_result& x) {
  switch (x.judged) {
    case verdict::not_written_yet:
      return fmt::format("not written yet. Write it, then: ./run build && build/release/ringmaster puzzles {}",
                         which.number);
    case verdict::wrong: return "wrong. " + x.error;
    case verdict::right: return short_verdict(x) + " than the reference. It trains the whole model.";
    case verdict::solved: break;
  }
  return "solved. It trains the whole model, takes no longer than the reference, and holds no more.";
}

/// Time and memory, where there are any.
std::string numbers_of(const puzzle_result& x) {
  return is_right(x) ? fmt::format("{:>8.6g} {:>12}", x.time, x.peak_memory) : fmt::format("{:>8} {:>12}", "-", "-");
}

std::string text_of(const puzzle& which, const puzzle_result& stub, const puzzle_result& solution) {
  auto& m = which.trained;
  return fmt::format("Puzzle {}: {}. {}, {}, a global batch of {}.\n\n{}\n\n", which.number, which.name,
                     counted(which.ranks, "rank"), counted(m.layers, "layer"), m.global_batch, which.task)
         + fmt::format("stub      {}\nverdict   {}\n\n", which.stub_file(), sentence_of(which, stub))
         + fmt::format("{:<14} {:>8} {:>12}\n", "", "time", "peak memory")
         + fmt::format("{:<14} {}\n", "yours", numbers_of(stub))
         + fmt::format("{:<14} {:>8.6g} {:>12}\n", "reference", which.reference_time, which.reference_memory)
         + fmt::format("{:<14} {}   read it in {}\n", "our solution", numbers_of(solution), which.solution_file);
}

std::string json_of(const puzzle& which, const puzzle_result& stub, const puzzle_result& solution) {
  auto text = [](const std::string& x) { return x.empty() ? "null" : json_text(x); };
  auto time = [](const puzzle_result& x) { return is_right(x) ? fmt::format("{:.17g}", x.time) : "null"; };
  auto memory = [](const puzzle_result& x) { return is_right(x) ? fmt::format("{}", x.peak_memory) : "null"; };
  return fmt::format(
    R"({{"number":{},"name":"{}","ranks":{},"layers":{},"batches":{},"stub":"{}","verdict":"{}","error":{},"time":{},)"
    R"("peak_memory":{},"reference_time":{:.17g},"reference_memory":{},"solution":"{}","solution_time":{},)"
    R"("solution_memory":{}}})",
    which.number, which.name, which.ranks, which.trained.layers, which.trained.global_batch, which.stub_file(),
    words_of(stub.judged), text(stub.error), time(stub), memory(stub), which.reference_time, which.reference_memory,
    which.solution_file, time(solution), memory(solution));
}

/// The reader's program may never end.
puzzle_result check_in_time(const puzzle& which) {
  time_limit limit{std::chrono::seconds{20},
                   fmt::format("ringmaster puzzles: {} has not ended in 20 s: does a rank go round in a loop in which it "
                               "begins no operation?",
                               which.stub_file())};
  return check_stub(which);
}

// Line after line: one that never ends leaves the others told.
void print_table(std::FILE* out) {
  fmt::print(out, "{:<31} {:<28} {:>8} {:>12} {:>12} {:>12}\n", "puzzle", "verdict", "time", "peak memory", "reference",
             "its memory");
  for (auto& which : puzzles()) {
    std::fflush(out);
    auto stub = check_in_time(which);
    fmt::print(out, "{}  {:<28} {:<28} {} {:>12.6g} {:>12}\n", which.number, which.name, short_verdict(stub),
               numbers_of(stub), which.reference_time, which.reference_memory);
  }
  fmt::print(out, "\nTime in the puzzles' units, memory in elements. `ringmaster puzzles N` has the task of puzzle N.\n");
}

std::string list_of_all() {
  std::string text;
  for (auto& which : puzzles())
    text += (text.empty() ? "[" : ",\n") + json_of(which, check_in_time(which), check_solution(which));
  return text + "]\n";
}

} // namespace

int puzzles_command(std::span<const std::string> args, std::FILE* out, std::FILE* err) {
  auto opts = parse(args);
  if (!opts) {
    fmt::print(err, "ringmaster puzzles: {}\n", render(opts.error()));
    return exit_usage;
  }
  if (opts->help) {
    fmt::print(out, "{}", puzzles_help);
  } else if (opts->only == nullptr && opts->json) {
    fmt::print(out, "{}", list_of_all());
  } else if (opts->only == nullptr) {
    print_table(out);
  } else {
    auto& which = *opts->only;
    auto stub = check_in_time(which), solution = check_solution(which);
    fmt::print(out, "{}", opts->json ? json_of(which, stub, solution) + "\n" : text_of(which, stub, solution));
  }
  return 0;
}

} // namespace ringmaster
